#!/usr/bin/env bash
# run.sh - the loop of a mission: decides what is due and starts that role, until DONE.
#
#   run.sh                  run until DONE, or until a person is needed; --lanes N: N features at once; --for 25m: time limit
#   run.sh --once           execute one decision; --on build2,build3: lanes on other machines (docs/machines.md)
#   run.sh ROLE [FEATURE]   one run by hand, such as: run.sh worker F-023; --again: also if it has passed
#   run.sh COMMAND [WORDS]  any harness command, such as: run.sh status
#   run.sh -C DIR [WORDS]   any of these, as if started in DIR
#
# Start it in the folder with SPEC.md, a git repository, or below. Exit codes (docs/contract.md): 0 done, 3 escalated, 5 run or
# time cap, 6 cost cap, 7 plan rejected, 8 checkpoint, 9 stopped or paused, 10 negative verdict, 11 a person must fix something,
# 64 usage, 65 broken state, 69 agent not available, 75 busy, killed or out of time, 130 and 143 interrupted.
set -u

commands=' accept ask check checkpoint claim completion diff do doctor ending enter escalation export feature features forget gc goal help hold identity init issue land log machine memory next note pause remove replay reply report resume runs schedule search sessions skill snapshot spec status steer stop task team usage verify watch why workspace '
here=${BASH_SOURCE[0]}
while [ -L "$here" ]; do
  link=$(readlink "$here")
  case $link in /*) here=$link ;; *) here=$(dirname "$here")/$link ;; esac
done
here=$([[ $here == */* ]] || here=./$here; cd "${here%/*}/" && pwd -P) || exit 70
[ -n "${HARNESS_PROJECT-}" ] || [ -e .harness ] || [ -e SPEC.md ] || set -- -C . "$@" # the program searches upwards
export HARNESS_HOME=${HARNESS_HOME:-$here} HARNESS_PROJECT=${HARNESS_PROJECT:-$PWD} HARNESS_CALLED=${HARNESS_CALLED:-$0}
export HARNESS_STATE=$HARNESS_PROJECT/.harness PYTHONPATH=$HARNESS_HOME
python=${HARNESS_PYTHON:-$HARNESS_HOME/.venv/bin/python} program=$HARNESS_HOME/harness/__main__.py
[ -f "$program" ] || program=$HARNESS_HOME/../__main__.py
[ -x "$python" ] || {
  what="$(id -un 2>/dev/null) cannot run $python: not permitted, or gone. Fix that, or run again"
  [ -n "$(ls -d "$python" 2>/dev/null)" ] || what='it is not set up yet. Run once'
  echo "harness: $what: make -C '$HARNESS_HOME' setup" >&2; exit 69
}
harness() { "$python" -P "$program" "$@"; }

child='' signal='' others=''
pass_on() { # SIGNAL CODE: forward it to the current run and the other lanes; a background child may ignore INT, so TERM follows it
  signal=$2
  for one in $child $others; do kill -s "$1" "$one"; [ "$1" != INT ] || kill -s TERM "$one"; done 2>/dev/null
}
reap() { while wait "$child" 2>/dev/null; code=$?; kill -0 "$child" 2>/dev/null; do :; done; child=''; }
obey() { # after a signal: release the turn, and exit once the other lanes have ended; one may have started after the signal
  [ -z "$signal" ] || { exec 8>&-; for child in $others; do kill -s TERM "$child" 2>/dev/null; reap; done; exit "$signal"; }
}
await() { # wait for the child despite signals; resend one that arrived before its start; returns its exit code
  local code; [ -z "$signal" ] || { sleep 0.5; kill -s TERM "$child" 2>/dev/null; }
  reap; obey; return "$code"
}

find_role() { # $script: the role's script; a custom one has precedence
  script=$HARNESS_STATE/roles/$1.py
  [ -f "$script" ] || { script=$HARNESS_HOME/roles/$1.py && [ -f "$script" ]; }
}
wish() { export HARNESS_ROLE=$1 FEATURE_ID=${2-} HARNESS_RUN_ID=${EPOCHSECONDS:-$(date +%s)}-$1${2:+-$2}; } # L0: the variables of a run

start() { # one run of ROLE [FEATURE]
  find_role "$1" || { echo "harness: there is no role '$1'" >&2; exit 64; }
  wish "$1" "${2-}"
  (trap - INT; HARNESS_LEFT=$((seconds > SECONDS ? seconds - SECONDS : 1))s exec "$python" -P -m harness.run "$script" ${2:+"$2"} </dev/null 9>&-) & # `&` ignores INT
  child=$!; await
}

say() { echo "$([ ! -t 2 ] || printf '\r\033[K')$1" >&2; } # in place of a spinner
finish() { # CODE [WHO]: exit with a documented code, also if SIGKILL or another foreign signal ended the process
  exec 8>&-; for child in $others; do await; done # release the turn, which a run without a claim may have kept
  case $1 in ? | ?? | 12[678] | 130 | 143) exit "$1" ;; esac
  say "harness: ${2:-the run} was killed (signal $(($1 - 128))); the next start settles it and continues"
  harness init --quietly 9>&- >/dev/null
  exit 75
}
outlive() { # wait for the other lanes, without the turn: whether one of them had what this lane lacks
  local had=1; exec 8>&-; unset HARNESS_TURN; for child in $others; do await; [ $? = 69 ] || had=0; done; others=''; return $had; }

leave() { # after the other lanes: a last curation if it is due, ten lines, and the documented code
  [ "$2" -lt 64 ] || [ "$1" = TIME ] && [ "${HARNESS_LANE:-1}" = 1 ] || finish "$2"
  exec 8>&-; for child in $others; do await; done # release the turn, which a wait may have kept
  read -r word role _ <<<"$(harness next --leaving "$1")"
  [ "$word" != NEXT ] || TRIGGER=leaving start "$role"
  harness ending "$1"; exit "$2"
}

loop() { # decide and execute repeatedly, as the options say; every other lane is a separate run.sh
  trap '[ $? != 130 ] || say "stopped; the same command goes on"' EXIT; trap : PIPE
  trap 'pass_on INT 130' INT; trap 'pass_on TERM 143' TERM; trap 'pass_on HUP 143' HUP; export HARNESS_LOOP=$$
  [ "${HARNESS_LANE:-1}" != 1 ] || harness init --quietly -- "$@" || finish $? init
  mask=$(umask); umask go-w; { exec 9<>"$HARNESS_STATE/locks/loop${HARNESS_LANE-}" 8<>"$HARNESS_STATE/locks/turn"; } 2>/dev/null; umask "$mask"
  options=$(harness hold 9 "$@" 8>&-) || finish $? hold
  read -r once seconds lanes machines <<<"$options"; read -ra machines <<<"$machines"; nap=1 decision=''
  for ((lane = 2; lane <= lanes; lane++)); do
    HARNESS_TURN=8 HARNESS_LANE=$lane HARNESS_MACHINE=${machines[lane - 1]-} "$here/run.sh" --for "${seconds}s" </dev/null 8>&- 9>&- & others="$others $!"
  done
  [ "$lanes" -lt 2 ] || export HARNESS_TURN=8 HARNESS_LANE=1; [ -z "${machines[0]-}" ] || export HARNESS_MACHINE=${machines[0]}
  while [ "$SECONDS" -lt "$seconds" ]; do
    told=$decision code=0
    decision=$(harness next 9>&-) || code=$?; obey
    read -r word what feature <<<"$decision"
    case $word in
      NEXT) [ -n "${HARNESS_LANE-}" ] || [ "$decision" = "$told" ] || echo "> $decision" 2>/dev/null ;; # its reader may be gone
      WAIT) [ "${HARNESS_LANE:-1}" != 1 ] || [ "$what${HARNESS_LANE-}" = 01 ] || [ "$decision" = "$told" ] || harness next --told "$decision" 9>&-; obey ;;
      *) leave "$decision" "$code" ;;
    esac
    case $word$once in NEXT*) start "$what" "$feature" || code=$? ;; WAIT1) code=75 ;; esac
    [ "$once" = 0 ] || finish "$code"
    case $word$code in NEXT0) nap=1 decision='' && continue ;; NEXT75 | WAIT*) ;; NEXT69) outlive && continue; finish 69 ;; *) finish "$code" ;; esac
    nap=$((nap < 60 ? nap * 2 : 60)) left=$((seconds > SECONDS ? seconds - SECONDS : 0)) # poll ever less often
    harness next --lull "$((nap < left ? nap : left))" "$decision" 9>&- & # ends when a run ends; in `await`, so that a signal ends it
    child=$!; await
  done
  leave TIME 75
}

case ${1-} in
  '' | --once | --for | --lanes | --on) [ -z "${_HARNESS_COMPLETE-}" ] || exec "$python" -P "$program"; loop "$@" ;;
  *) own=$HARNESS_STATE/roles/$1.py; [ -f "$own" ] || own=''
    if [[ ($own || $commands != *" $1 "*) && ${2-} != -h && ${2-} != --help ]] && find_role "$1"; then
      [[ $commands != *" $1 "* ]] || echo "harness: '$1' is a role of this mission here ($own), not the command" >&2
      case ${2-} in -*) wish "$1" "${3-}" ;; *) wish "$1" "${2-}" ;; esac; shift
      exec "$python" -P -m harness.run "$script" "$@"
    fi
    exec "$python" -P "$program" "$@"
    ;;
esac
