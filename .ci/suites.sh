#!/usr/bin/env bash
# Runs test suites and adds up what they report.
#
#   OUT=build .ci/suites.sh symbols unit server conformance
#
# Ends with one line "N passed, N failed", and with status 0 only if every suite ran at least one
# test and none failed. A suite that crashes, hangs, or has nothing to run counts as one failure.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${OUT:?the directory with what was built}
jobs=${JOBS:-2}
limit=${SUITE_SECONDS:-420}
FF_MODULE=$(realpath -m "$out/ff.so")
export FF_MODULE

# A sanitizer's report is a failure whoever looks at the process that wrote it: reports go to files,
# which are counted after each suite. Undefined behaviour also ends the process.
reports=$(realpath -m "$out/sanitizer-reports")
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:log_path=$reports/report
export LSAN_OPTIONS=suppressions=$PWD/.ci/server-leaks:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

total_passed=0
total_failed=0

suite_symbols() {
    local exported
    exported=$(nm -D --defined-only "$FF_MODULE" | awk '{print $3}')
    if [[ $exported == ValkeyModule_OnLoad ]]; then
        echo "ff.so exports ValkeyModule_OnLoad and nothing else"
        echo "1 passed, 0 failed"
    else
        echo "ff.so must export ValkeyModule_OnLoad and nothing else, but exports:"
        echo "$exported"
        echo "0 passed, 1 failed"
    fi
}

criterion() {
    [[ -x $1 ]] || { echo "there are no tests here yet"; return 1; }
    timeout --kill-after=10 "$limit" "$1" --jobs "$jobs" --color=never
}

suite_unit() { criterion "$out/unit-tests"; }
suite_server() { criterion "$out/server-tests"; }

replay() { timeout --kill-after=10 "$limit" python3 "tests/conformance/$1" --module "$FF_MODULE" "${@:2}"; }

# The recordings in every way of calling; once more with a replica and an AOF; and hostile variations.
suite_conformance() { replay run.py --ways; }
suite_digest() { replay run.py --digest; }
suite_hostile() { replay hostile.py --seconds 60; }
suite_hostile_native() { replay hostile_native.py --seconds 30; }

# Random lives with everything switched on, and whether the data is sound when all have ended.
suite_soak() {
    timeout --kill-after=10 "$limit" python3 tests/soak/soak.py --module "$FF_MODULE" \
        --seconds "${SOAK_SECONDS:-20}"
}

# The examples of the documentation, and the workers in docs/examples.
suite_docs() { timeout --kill-after=10 "$limit" python3 tests/docs/run.py --module "$FF_MODULE" --out "$out"; }

# Prints "PASSED FAILED" from the last summary in a log, in Criterion's words or in ours.
counts() {
    local number='([0-9]+)'
    sed -nE \
        -e "s/.* Passing: $number \| Failing: $number \| Crashing: $number.*/\1 \2 \3/p" \
        -e "s/^$number passed, $number failed.*/\1 \2 0/p" "$1" |
        tail -n 1 | awk '{print $1, $2 + $3}'
}

# Prints the sanitizers' reports to stderr and their number to stdout.
count_reports() {
    local files=("$reports"/*)
    [[ -e ${files[0]} ]] || { echo 0; return; }
    cat "${files[@]}" >&2
    echo ${#files[@]}
}

run_suite() {
    local name=$1 log=$out/$1.log status passed failed reported
    echo "== $name"
    rm -rf "$reports"
    mkdir -p "$reports"
    "suite_$name" 2>&1 </dev/null | tee "$log"
    status=${PIPESTATUS[0]}
    read -r passed failed <<<"$(counts "$log")"
    passed=${passed:-0} failed=${failed:-0}
    if [[ $status -eq 124 || $status -eq 137 ]]; then
        echo "$name: stopped after $limit seconds"
        failed=$((failed + 1))
    elif [[ $((passed + failed)) -eq 0 ]]; then
        echo "$name: ran nothing"
        failed=1
    elif [[ $status -ne 0 && $failed -eq 0 ]]; then
        echo "$name: ended with status $status"
        failed=1
    fi
    reported=$(count_reports)
    [[ $reported -eq 0 ]] || echo "$name: $reported sanitizer reports"
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed + reported))
}

for suite in "$@"; do
    run_suite "$suite"
done
echo
echo "$total_passed passed, $total_failed failed"
[[ $total_failed -eq 0 ]]
