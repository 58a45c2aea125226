#!/usr/bin/env bash
# Installs BullMQ beside a copy of its script, in BUILD_DIR. Where that cannot be done it says so
# loudly and leaves no script: the benchmark then runs without BullMQ and its report says so too.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")" && pwd)
build=${BUILD_DIR:?where to install}
packages=(bullmq@6 ioredis@5)

mkdir -p "$build"
rm -f "$build/bullmq.mjs"

skip() {
    printf '\n*** BullMQ is left out: %s\n\n' "$*" >&2
    exit 0
}

command -v node >/dev/null && command -v npm >/dev/null || skip "node and npm are not installed"
if [[ ! -d $build/node_modules/bullmq || ! -d $build/node_modules/ioredis ]]; then
    log=$build/npm.log
    timeout 300 npm install --prefix "$build" --no-audit --no-fund --loglevel=error \
        "${packages[@]}" >"$log" 2>&1 || {
        tail -n 5 "$log" >&2
        skip "npm could not install it"
    }
fi
cp "$source_dir/bullmq.mjs" "$build/bullmq.mjs"
