"""Whether the reference is complete: every command and setting of the module is documented, with
the facts that the server itself tells about it."""
import re

FACTS = "*Complexity:* "


def title(name):
    return name.upper().replace("|", " ")


def commands(client):
    """The documented facts by command name; commands that only have subcommands are left out."""
    names = sorted(client("COMMAND", "LIST", "FILTERBY", "MODULE", "ff"))
    containers = {name.split("|")[0] for name in names if "|" in name}
    told = {}
    for name in names:
        if name in containers:
            continue
        info = client("COMMAND", "INFO", name)[0]
        docs = client("COMMAND", "DOCS", name)[1]
        docs = dict(zip(docs[::2], docs[1::2]))
        categories = " ".join("`%s`" % category["status"] for category in info[6])
        complexity = docs.get("complexity", "?").rstrip(".")
        told[name] = FACTS + complexity + ". *ACL:* " + categories
    return told


def check_commands(client, lines, examples, report):
    """Every command has a heading, the line of facts, and an example that is run."""
    typed = [example.command.upper() for example in examples]
    for name, facts in commands(client).items():
        heading = "### " + title(name)
        if heading not in lines:
            report("%s has no heading" % title(name))
            continue
        section = []
        for line in lines[lines.index(heading) + 1:]:
            if line.startswith("#"):
                break
            section.append(line)
        if facts not in section:
            report("%s: the line of facts must be\n      %s" % (title(name), facts))
        elif not any((command + " ").startswith(title(name) + " ") for command in typed):
            report("%s has no example" % title(name))
        else:
            report(None)


def write_facts(client, lines):
    """The lines of a page with the facts as the server tells them."""
    facts = {"### " + title(name): line for name, line in commands(client).items()}
    current, written = None, []
    for line in lines:
        if line.startswith("#"):
            current = facts.get(line)
        written.append(current if current and line.startswith(FACTS.rstrip()) else line)
    return written


def check_settings(client, lines, report):
    """Every setting is in a table, with its default: | `ff.name` | default | meaning |"""
    documented = {}
    for line in lines:
        row = re.match(r"\| `(ff\.[a-z-]+)` \| (.*?) \|", line)
        if row:
            documented[row.group(1)] = row.group(2).strip("`")
    settings = client("CONFIG", "GET", "ff.*")
    actual = {name: value or "empty" for name, value in zip(settings[::2], settings[1::2])}
    for name in sorted(set(actual) | set(documented)):
        if actual.get(name) == documented.get(name):
            report(None)
        else:
            report("%s: the default is %s, documented as %s"
                   % (name, actual.get(name, "not there"), documented.get(name, "nothing")))
