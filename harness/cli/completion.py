"""`completion`: the script by which a shell completes `harness` and run.sh. What it asks for is in candidates.py."""

from __future__ import annotations

import click

from harness.base import console
from harness.cli.quick import COMPLETING

# Each asks the program that was typed, so that any copy of run.sh completes for itself.
BASH = """_harness_complete() {
  local line IFS=$'\\n'
  COMPREPLY=()
  for line in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD VARIABLE=bash_complete \\
      "${1/#\\~/$HOME}" 2>/dev/null </dev/null); do
    case $line in
      dir,*) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$2")) ;;
      file,*) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$2")) ;;
      *) COMPREPLY+=("${line#*,}") ;;
    esac
  done
}
complete -F _harness_complete harness run.sh"""
ZSH = """#compdef harness run.sh
_harness_complete() {
  local line
  local -a found
  for line in ${(f)"$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) VARIABLE=bash_complete \\
      ${words[1]/#\\~/$HOME} 2>/dev/null </dev/null)"}; do
    case $line in
      dir,*) _files -/ ;;
      file,*) _files ;;
      *) found+=("${line#*,}") ;;
    esac
  done
  (( $#found )) && compadd -V harness -a found
}
compdef _harness_complete harness run.sh"""
FISH = """function _harness_complete
    set -l program (string replace -r '^~' $HOME -- (commandline -opc)[1])
    for line in (env COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -t | string collect) \\
            VARIABLE=fish_complete $program 2>/dev/null </dev/null)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories (commandline -t)
            case file
                __fish_complete_path (commandline -t)
            case '*'
                echo $parts[2]
        end
    end
end
for name in harness run.sh
    complete --no-files --command $name --arguments '(_harness_complete)'
end"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@click.command()
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def completion(shell: str) -> None:
    """Print what completes commands, roles and ids in a shell."""
    console.print_line(SCRIPTS[shell].replace("VARIABLE", COMPLETING))
