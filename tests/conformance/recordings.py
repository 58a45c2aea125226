"""The recordings: which scenarios there are, and which function each of them is about."""
import collections
import glob
import json
import os

from plumbing import HERE


def load(files=None):
    """{family: [scenario]}, in the order of the files. A scenario gets `subjects`: the functions
    whose behaviour it records, as opposed to those that only prepare the scene."""
    families = {}
    for path in files or sorted(glob.glob(os.path.join(HERE, "golden", "*.json"))):
        with open(path) as file:
            for scenario in json.load(file)["scenarios"]:
                families.setdefault(scenario["name"].split("/")[0], []).append(scenario)
    every = [scenario for scenarios in families.values() for scenario in scenarios]
    subject_of_group = group_subjects(every)
    for scenario in every:
        scenario["subjects"] = {subject_of_group[group(scenario)], last_function(scenario)}
    return families


def group(scenario):
    return "/".join(scenario["name"].split("/")[:2])


def function(step):
    """The name of the function that a step calls, or None."""
    command = step.get("cmd", [None])
    return command[1] if command[0] == "FCALL" else None


def functions(scenario):
    return {function(step) for step in scenario["steps"]} - {None}


def last_function(scenario):
    called = [function(step) for step in scenario["steps"] if function(step)]
    return called[-1] if called else None


def group_subjects(scenarios):
    """A group of scenarios is about the function that most of them end with."""
    endings = collections.defaultdict(collections.Counter)
    for scenario in scenarios:
        endings[group(scenario)][last_function(scenario)] += 1
    return {name: counts.most_common(1)[0][0] for name, counts in endings.items()}


def implemented(client, names):
    """Those of the names that the module knows: the others are refused as unknown by FF.CALL."""
    known = set()
    for name in sorted(names):
        reply = client("FF.CALL", name, 0)
        if not (is_error(reply) and reply["error"].startswith("ERR unknown function")):
            known.add(name)
    return known


def crash_recorded(scenario, step):
    """True where the reference died: the module must refuse, and change nothing."""
    return scenario["name"].endswith("__lua_crash") and is_error(step["reply"])


def is_error(reply):
    return isinstance(reply, dict) and "error" in reply


def refused(reply):
    return is_error(reply) or isinstance(reply, list) and reply[:1] == [0]
