#!/usr/bin/env bash
# Starts a server with the module in the foreground, for trying things out.
#
#   MODULE=build/ff.so DATA=build/run [PORT=6379] .ci/serve.sh
#
# Without PORT it takes 6379, or the next port that is free. Ctrl-C stops the server; what it holds
# is kept in DATA, in an append-only file, and is there again at the next start.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(realpath "${MODULE:?the module to load}")
data=${DATA:?the directory for the data}
mkdir -p "$data"
data=$(realpath "$data")

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

choose_port() {
    local port=6379
    while is_taken "$port"; do
        port=$((port + 1))
    done
    echo "$port"
}

if [[ -z ${PORT:-} ]]; then
    PORT=$(choose_port)
elif is_taken "$PORT"; then
    echo "port $PORT is taken; leave PORT= out to get a free one" >&2
    exit 1
fi

# Waits until the server answers, then tells what to do with it.
greet() {
    while ! valkey-cli -p "$PORT" PING >/dev/null 2>&1; do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    cat <<END

  A server with the module is listening on port $PORT. Ctrl-C stops it. In another terminal, create an
  execution, claim it, look at the claim, and complete it with the four values that show the lease:

    valkey-cli -p $PORT FF.CREATE '*' orders charge PAYLOAD 'order 17'
    claim=\$(valkey-cli -p $PORT FF.CLAIM orders cashier cashier-1); echo "\$claim"
    valkey-cli -p $PORT FF.COMPLETE \$(echo "\$claim" | sed -n '2p;4p;6p;8p') RESULT paid

  docs/tutorial.md goes on from there, typed into valkey-cli -3 -p $PORT.

END
}

# Started from a shell that ends at once: the server must not have a child it does not know.
(greet $$ &)

export LD_PRELOAD=${FF_SERVER_PRELOAD:-}
exec valkey-server --port "$PORT" --dir "$data" --appendonly yes --save '' --always-show-logo no \
    --loadmodule "$module" scanners yes
