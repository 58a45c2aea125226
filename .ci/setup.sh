#!/usr/bin/env bash
# Makes sure that what a make target needs is there.
#
#   .ci/setup.sh build|run|test|format|lint
#
# Prints nothing when nothing is missing. On Debian 12 as root, installs what is missing and says
# so. Anywhere else, lists what is missing and fails: no attempt is made to change the machine.
#
# Mirror addresses are never written down: they come from the machine's own APT sources. The
# machine's APT configuration is left as it is; additional suites live in a private one.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-test}
header_dir=${VALKEYMODULE_DIR:-build/include}
header=$header_dir/valkeymodule.h
minimum_server=8.0

# src/valkeymodule.h of Debian's source package valkey 8.1.
header_sha256=e5761267be5536782f273cf00cc203684e036717f89fd21d8ec24e503a697b04

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

missing_packages=()
missing_names=()
header_missing=

# need PACKAGE DESCRIPTION PROBE...: PROBE succeeds when the thing is there.
need() {
    local package=$1 description=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    missing_packages+=("$package")
    missing_names+=("$description (Debian: $package)")
}

have() { command -v "$1"; }
have_library() { pkg-config --exists "$1"; }
have_c_library() { printf '#include <stdlib.h>\n' | "${CC:-cc}" -E -; }

have_server() {
    local version oldest
    version=$(valkey-server --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p')
    oldest=$(printf '%s\n' "$minimum_server" "$version" | sort -V | head -n 1)
    [[ $oldest == "$minimum_server" ]]
}

have_header() {
    [[ -f $header ]] || return 1
    [[ -n ${VALKEYMODULE_DIR:-} ]] || echo "$header_sha256  $header" | sha256sum --check --status
}

need_to_build() {
    need gcc "a C17 compiler" have "${CC:-cc}"
    need libc6-dev "the C library's headers" have_c_library
    need pkg-config "pkg-config" have pkg-config
    need libssl-dev "libcrypto and its headers" have_library libcrypto
    need libjson-c-dev "json-c and its headers" have_library json-c
    need_header
}

need_to_run() {
    need_to_build
    need valkey-server "valkey-server $minimum_server or newer" have_server
    need valkey-tools "valkey-cli" have valkey-cli
}

need_to_test() {
    need_to_run
    need libcriterion-dev "Criterion and its headers" have_library criterion
    need libhiredis-dev "hiredis and its headers" have_library hiredis
    need python3 "Python 3" have python3
    need binutils "nm" have nm
}

# Anyone may fetch the header on Debian 12; elsewhere it is one more thing to ask for.
need_header() {
    have_header && return
    [[ -z ${VALKEYMODULE_DIR:-} ]] || die "no valkeymodule.h in VALKEYMODULE_DIR=$VALKEYMODULE_DIR"
    header_missing=yes
    if is_debian_12; then
        need xz-utils "xz" have xz
    else
        missing_names+=("valkeymodule.h of Valkey 8.1 (tell its directory with VALKEYMODULE_DIR=)")
    fi
}

is_debian_12() {
    [[ -r /etc/os-release ]] &&
        (. /etc/os-release && [[ ${ID:-} == debian && ${VERSION_CODENAME:-} == bookworm ]])
}

# The first entry that carries Debian 12's main archive. APT itself does the parsing, whatever the
# format of the sources. Without downloaded lists only the configured suite name can be matched.
debian_mirror() {
    local format='$(REPO_URI)' mirror
    mirror=$(apt-get indextargets --format "$format" \
        'Created-By: Packages' 'Origin: Debian' 'Codename: bookworm' 'Component: main' | head -n 1)
    [[ -n $mirror ]] || mirror=$(apt-get indextargets --no-release-info --format "$format" \
        'Created-By: Packages' 'Release: bookworm' 'Component: main' | head -n 1)
    [[ -n $mirror ]] || die "no APT source carries Debian 12's main archive: no mirror to use"
    printf '%s\n' "$mirror"
}

scratch=
own_policy=
clean_up() {
    [[ -z $own_policy ]] || rm -f "$own_policy"
    [[ -z $scratch ]] || rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Starts a private APT configuration whose sources are the files in $scratch/sources. The user that
# APT downloads with must be able to reach it.
begin_private_apt() {
    [[ -z $scratch ]] || rm -rf "$scratch"
    scratch=$(mktemp -d)
    chmod 755 "$scratch"
    mkdir -p "$scratch"/{sources,lists/partial,cache/archives/partial,download}
    [[ $EUID -ne 0 ]] || chown _apt "$scratch/download"
}

private_apt() {
    local log=$scratch/log
    DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$scratch/sources" \
        -o Dir::State::lists="$scratch/lists" -o Dir::Cache="$scratch/cache" \
        -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" >"$log" 2>&1 </dev/null && return
    cat "$log" >&2
    die "apt-get $* failed"
}

source_entry() { # TYPE MIRROR SUITE
    printf '%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$@"
}

# valkey-server is not in Debian 12 itself. The entry is skipped where the machine already has one,
# since APT refuses two entries for one suite that disagree about keys.
add_backports() {
    local suites mirror
    suites=$(apt-get indextargets --no-release-info --format '$(RELEASE)' 'Created-By: Packages')
    ! grep -qx bookworm-backports <<<"$suites" || return 0
    mirror=$(debian_mirror)
    source_entry deb "$mirror" bookworm-backports >"$scratch/sources/ff-backports.list"
    say "valkey comes from bookworm-backports on this machine's own mirror"
}

# The distribution's server must not run on the default port, now or after the next boot, only
# because somebody built this.
hold_services() {
    local policy=/usr/sbin/policy-rc.d
    [[ ! -e $policy ]] || return 0
    own_policy=$policy
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
}

disable_service() {
    command -v systemctl >/dev/null || return 0
    systemctl disable --quiet valkey-server.service 2>/dev/null || true
}

install_packages() {
    local file
    say "installing ${missing_packages[*]}"
    begin_private_apt
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        [[ ! -e $file ]] || ln -s "$file" "$scratch/sources/"
    done
    [[ " ${missing_packages[*]}" != *" valkey-"* ]] || add_backports
    hold_services
    private_apt update
    private_apt install --no-install-recommends "${missing_packages[@]}"
    [[ " ${missing_packages[*]} " != *" valkey-server "* ]] || disable_service
}

fetch_header() {
    local mirror archive
    say "fetching valkeymodule.h from Debian's source package valkey into $header_dir"
    begin_private_apt
    mirror=$(debian_mirror)
    source_entry deb-src "$mirror" trixie >"$scratch/sources/ff-source.list"
    private_apt update
    (cd "$scratch/download" && private_apt source --download-only --tar-only valkey/trixie)
    archive=$(echo "$scratch"/download/valkey_*.orig.tar.xz)
    tar -xJOf "$archive" --wildcards '*/src/valkeymodule.h' >"$scratch/valkeymodule.h"
    echo "$header_sha256  $scratch/valkeymodule.h" | sha256sum --check --status ||
        die "valkeymodule.h in $(basename "$archive") is not the one whose SHA-256 is pinned here"
    mkdir -p "$header_dir"
    cp "$scratch/valkeymodule.h" "$header.new.$$"
    mv "$header.new.$$" "$header"
}

fail_with_list() {
    say "$1"
    printf '  - %s\n' "${missing_names[@]}"
    exit 1
} >&2

find_missing() {
    missing_packages=()
    missing_names=()
    header_missing=
    case $target in
    build) need_to_build ;;
    run) need_to_run ;;
    test) need_to_test ;;
    format) need clang-format "clang-format" have clang-format ;;
    lint) need cppcheck "cppcheck" have cppcheck ;;
    *) die "unknown target $target" ;;
    esac
}

nothing_missing() { [[ ${#missing_names[@]} -eq 0 && -z $header_missing ]]; }

find_missing
! nothing_missing || exit 0

# One set-up at a time: another one may be installing the same things right now.
exec 9<.ci/setup.sh
flock 9
find_missing
if [[ ${#missing_names[@]} -gt 0 ]]; then
    [[ $EUID -eq 0 ]] && is_debian_12 ||
        fail_with_list "this is missing, and only on Debian 12 as root is it installed from here:"
    install_packages
fi
[[ -z $header_missing ]] || fetch_header
find_missing
nothing_missing || fail_with_list "still missing after the installation:"
