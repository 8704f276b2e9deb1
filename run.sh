#!/usr/bin/env bash
# run.sh - the clock of a mission: asks what is due and starts that role, until DONE.
#
#   run.sh                  go on until DONE, or until a person is needed
#   run.sh --once           carry out one decision
#   run.sh ROLE [FEATURE]   one run by hand, such as: run.sh worker F-023; --again: also where it has passed
#   run.sh COMMAND …        any harness command, such as: run.sh status
#   run.sh -C DIR …         any of these, as if started in DIR
#
# Start it in the folder with SPEC.md, a git repository, or below. Exit codes: 0 done, 3 escalated, 5 run or time cap, 6 cost cap,
# 7 plan rejected, 8 checkpoint, 9 stopped or paused, 10 negative verdict, 11 a person must fix something, 64 usage,
# 65 broken state, 69 agent not available, 75 busy or killed, 130 and 143 interrupted. See docs/contract.md.
set -u

commands=' accept check claim completion doctor ending escalation export feature gc help hold identity init issue log memory next note pause replay reply resume runs schedule search status steer stop usage verify why '
here=${BASH_SOURCE[0]}
while [ -L "$here" ]; do
  link=$(readlink "$here")
  case $link in /*) here=$link ;; *) here=$(dirname "$here")/$link ;; esac
done
here=$([[ $here == */* ]] || here=./$here; cd "${here%/*}/" && pwd -P) || exit 70
[ -n "${HARNESS_PROJECT-}" ] || [ -e .harness ] || [ -e SPEC.md ] || set -- -C . "$@" # the program looks for it upwards
export HARNESS_HOME=${HARNESS_HOME:-$here} HARNESS_PROJECT=${HARNESS_PROJECT:-$PWD} HARNESS_CALLED=${HARNESS_CALLED:-$0}
export HARNESS_STATE=$HARNESS_PROJECT/.harness PYTHONPATH=$HARNESS_HOME
python=${HARNESS_PYTHON:-$HARNESS_HOME/.venv/bin/python}
program=$HARNESS_HOME/harness/__main__.py
[ -f "$program" ] || program=$HARNESS_HOME/../__main__.py
if [ ! -x "$python" ]; then
  what='it is not set up yet. Once'
  [ -z "$(ls -d "$python" 2>/dev/null)" ] || what="$(id -un) cannot run $python: closed, or gone. Open it, or anew"
  echo "harness: $what: make -C '$HARNESS_HOME' setup" >&2 && exit 69
fi
harness() { "$python" -SP "$program" "$@"; }

child='' signal=''
pass_on() { # a signal of ours to the run under way; a shell's background child may ignore INT, so TERM follows it
  signal=$1
  [ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
  [ -z "$child" ] || [ "$1" != INT ] || kill -s TERM "$child" 2>/dev/null
}

obey() { case $signal in '') ;; INT) exit 130 ;; *) exit 143 ;; esac; } # end where a signal has asked us to

await() { # wait for the child through any number of signals; gives its exit code
  local code
  while wait "$child" 2>/dev/null; code=$?; kill -0 "$child" 2>/dev/null; do :; done
  child=''
  obey
  return "$code"
}

find_role() { # $script: the role's script, the mission's own first, which may import any installed package
  script=$HARNESS_STATE/roles/$1.py flags=-P
  [ -f "$script" ] || { script=$HARNESS_HOME/roles/$1.py flags=-SP && [ -f "$script" ]; }
}

wish() { # L0: what a run of ROLE [FEATURE] is told, and the id that it would like to have
  export HARNESS_ROLE=$1 FEATURE_ID=${2-}
  export HARNESS_RUN_ID=${EPOCHSECONDS:-$(date +%s)}-$1${2:+-$2}
}

start() { # one run of ROLE [FEATURE]
  find_role "$1" || { echo "harness: there is no role '$1'" >&2; exit 64; }
  wish "$1" "${2-}"
  "$python" "$flags" "$script" ${2:+"$2"} </dev/null 9>&- &
  child=$!; await
}

finish() { # CODE [WHO]: a documented code, also where SIGKILL or another signal that we did not pass on ended who ran
  case $1 in ? | ?? | 12[678] | 130 | 143) exit "$1" ;; esac
  echo "harness: ${2:-the run} was killed (signal $(($1 - 128))); the next start settles it and goes on" >&2
  harness init --quietly 9>&- >/dev/null
  exit 75
}

leave() { # one last look at what to curate, ten lines, and the documented code
  [ "$2" -lt 64 ] || finish "$2"
  read -r word role _ <<<"$(harness next --leaving "$1")"
  [ "$word" != NEXT ] || TRIGGER=leaving start "$role"
  harness ending "$1"; exit "$2"
}

loop() { # decide, carry out, again; with $1 once
  trap 'pass_on INT' INT; trap 'pass_on TERM' TERM; trap 'pass_on HUP' HUP
  export HARNESS_LOOP=$$
  harness init --quietly || finish $? init
  { exec 9<>"$HARNESS_STATE/locks/loop"; } 2>/dev/null || { echo "harness: $HARNESS_STATE cannot be written" >&2; exit 11; }
  harness hold 9 || finish $? hold
  nap=1 decision=''
  while :; do
    told=$decision code=0
    decision=$(harness next 9>&-) || code=$?
    obey
    read -r word what feature <<<"$decision"
    case $word in
      NEXT) [ "$decision" = "$told" ] || echo "> $decision" ;;
      WAIT) [ "$decision" = "$told" ] || harness next --told "$decision" 9>&-; obey ;;
      *) leave "$decision" "$code" ;;
    esac
    case $word$1 in NEXT*) start "$what" "$feature" || code=$? ;; WAIT?*) code=75 ;; esac
    [ -z "$1" ] || finish "$code"
    case $word$code in NEXT0) nap=1 decision='' && continue ;; NEXT75 | WAIT*) ;; *) finish "$code" ;; esac
    nap=$((nap < 60 ? nap * 2 : 60)) # whoever holds the mission, or the vendor, is asked less and less often
    sleep "$nap" 9>&- & # through `await`, so that a signal ends it
    child=$!; await
  done
}

case ${1-} in
  '') [ -z "${_HARNESS_COMPLETE-}" ] || exec "$python" -SP "$program"; loop '' ;;
  --once) loop once ;;
  *)
    if [ "${commands#* "$1" }" = "$commands" ] && [[ ${2-} != -h && ${2-} != --help ]] && find_role "$1"; then
      case ${2-} in -*) wish "$1" "${3-}" ;; *) wish "$1" "${2-}" ;; esac
      shift
      exec "$python" "$flags" "$script" "$@"
    fi
    exec "$python" -SP "$program" "$@"
    ;;
esac
