#!/usr/bin/env bash
# One night of a mission in a container that is thrown away: what stays is one file in /carried. Usage: night TIME
set -eu
carried=${CARRIED:-/carried}/mission.tar
: "${HARNESS_ORIGIN:?}" "${REPOSITORY:?}" "${AGENT:?}"
[ -z "${GH_TOKEN-}" ] || gh auth setup-git
git clone -q "$REPOSITORY" project
if [ -e "$carried" ]; then
  tar -xf "$carried" -C project
  git -C project fetch -q .harness.bundle '+refs/*:refs/*'
fi
cd project
[ -e .harness ] || harness init --agent "$AGENT"
code=0
harness --for "$1" || code=$?
[ "$code" != 0 ] || [ -s .harness/landings.jsonl ] || harness land --pr || code=$?
git bundle create -q .harness.bundle --branches='harness/*' --glob='refs/harness/*'
tar -cf "$carried.new" .harness .harness.bundle
mv "$carried.new" "$carried"  # whole, or as it was
exit "$code"
