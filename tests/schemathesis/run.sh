#!/usr/bin/env bash
# run.sh CRONHOLD SCHEMATHESIS: starts a daemon in a folder of its own on a free port, and lets Schemathesis ask it
# everything that the description of the API allows, and much that it does not. Quiet, unless something is wrong.
set -euo pipefail

cronhold="$(realpath "$1")"
schemathesis="$(realpath "$2")"
here="$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# How often it is looked whether the daemon is ready, ten times a second, before it counts as broken.
looks_max=300
# Seconds that all questions together may take.
seconds_max=60

folder="$(mktemp -d)"
daemon=
clean() {
    if [[ -n "$daemon" ]]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap clean EXIT

# Jobs that do nothing, one of them for a while, so that there is something to ask about and nothing to break.
mkdir "$folder/jobs"
printf 'program: {noop: true}\nschedule: {every: 1s}\nlabels: [quick]\n' >"$folder/jobs/tick.yaml"
printf 'program: {noop: 2s}\nschedule: triggered\noverlap: queue\n' >"$folder/jobs/nap.yaml"
printf 'progam: mistaken\n' >"$folder/jobs/broken.yaml"

cd "$folder"
: >log
env -i PATH="$PATH" "$cronhold" up --data data --jobs jobs --listen 127.0.0.1:0 >log 2>&1 &
daemon=$!
for ((look = 0; look < looks_max; look++)); do
    ! grep -q ' ready$' log || break
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.1
done
if ! grep -q ' ready$' log; then
    cat log >&2
    echo "run.sh: the daemon did not become ready" >&2
    exit 1
fi
url="$(sed 's/.*"url":"\([^"]*\)".*/\1/' data/address)"

failed=0
timeout "$seconds_max" "$schemathesis" --config-file "$here/schemathesis.toml" --no-color \
    run "$here/../../docs/reference/openapi.json" --url "$url" \
    --header "Authorization: Bearer $(cat data/token)" >answers 2>&1 || failed=$?
# A daemon that has died has refused everything since, which may look well.
kill -0 "$daemon" 2>/dev/null || failed=1
# So may one that has let nobody in. This job runs only when it is asked for.
grep -q ' nap#' log || failed=1
if ((failed)); then
    cat answers log >&2
    echo "run.sh: Schemathesis is not content with the API, or took more than $seconds_max seconds" >&2
    exit 1
fi
grep ' generated' answers
