#!/usr/bin/env bash
# run.sh CRONHOLD SCHEMATHESIS: starts a daemon in a temporary folder on a free port, and lets Schemathesis send valid
# and invalid requests for every operation of the OpenAPI description. Prints details only on failure.
set -euo pipefail

cronhold="$(realpath "$1")"
schemathesis="$(realpath "$2")"
here="$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# Maximum number of checks for readiness, ten per second.
checks_max=300
# Time limit for all requests, in seconds.
seconds_max=180

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

# Jobs that do nothing, one of them for two seconds, and one invalid job file.
mkdir "$folder/jobs"
printf 'program: {noop: true}\nschedule: {every: 1s}\nlabels: [quick]\n' >"$folder/jobs/tick.yaml"
printf 'program: {noop: 2s}\nschedule: triggered\noverlap: queue\n' >"$folder/jobs/nap.yaml"
printf 'progam: mistaken\n' >"$folder/jobs/broken.yaml"

cd "$folder"
: >log
env -i PATH="$PATH" "$cronhold" up --data data --jobs jobs --listen 127.0.0.1:0 >log 2>&1 &
daemon=$!
for ((check = 0; check < checks_max; check++)); do
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
    --header "Authorization: Bearer $(cat data/token)" >results 2>&1 || failed=$?
# If the daemon died, every request was refused, which Schemathesis may accept.
kill -0 "$daemon" 2>/dev/null || failed=1
# The same holds if authentication failed. This job runs only on request, so a run of it proves access.
grep -q ' nap#' log || failed=1
if ((failed)); then
    cat results log >&2
    echo "run.sh: Schemathesis found problems in the API, or took more than $seconds_max seconds" >&2
    exit 1
fi
grep ' generated' results
