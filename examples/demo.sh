#!/usr/bin/env bash
# Run the todo example to DONE on a copy of its own, with an identity of its own; offline, nothing outside build/ changes.
set -euo pipefail

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
place=$home/build/demo
rm -rf "$place"
mkdir -p "$place"
cp -R "$home/examples/todo" "$place/todo"
cd "$place/todo"
git init --quiet --initial-branch=main .
git add --all
git -c user.name=demo -c user.email=demo@localhost commit --quiet --message "A spec and its playbooks"

export HARNESS_IDENTITY=$place/identity XDG_STATE_HOME=$place/state
# The interpreter itself, in case `python3` is a version manager's shim: the example starts it a few hundred times.
PATH=$("$home/.venv/bin/python" -c 'import sys; print(sys.base_prefix)')/bin:$PATH
code=0
"$home/run.sh" </dev/null || code=$?

cat <<TEXT

Look next, in build/demo/todo:
  git log --oneline                        one commit a feature, each with the run that made it
  ../../../run.sh status                   features, tries and claims
  ../../../run.sh runs list                every run; runs show RUN has its receipts
  ../../../run.sh replay --all             every prompt that was sent, rebuilt and compared
  ../../../run.sh replay F-003 --explain   what the newest prompt about F-003 was made of
  ../../../run.sh replay RUN --agent playbook   fire a worker's prompt again, in a throw-away clone of then
  ../../../run.sh replay --mission         the whole mission again, from its records
  ../../../run.sh memory show summary      what was learned
  ../../../run.sh identity list            what every later mission's roles will know: nothing until you note it, or an agent says so
TEXT
exit "$code"
