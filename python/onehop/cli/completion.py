"""`onehop completion`: a script with which a shell completes commands, options and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from onehop.cli.commands import COMMANDS, Command, Group
from onehop.options import Options, argument, fields_of

_SHELLS = ("bash", "zsh", "fish")
# In bash and zsh: the words of the place to which the words before the cursor lead, or the values of the last one.
_BASH = """\
_onehop_words() {{
  case "$1" in
{cases}
  esac
}}
_onehop() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" place=onehop word values
  for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
    case "$word" in
      -*) ;;
      *) [[ " $(_onehop_words "$place") " == *" $word "* ]] && place="$place $word" ;;
    esac
  done
  values="$(_onehop_words "$place ${{COMP_WORDS[$((COMP_CWORD-1))]}}")"
  case "${{COMP_WORDS[$((COMP_CWORD-1))]}}" in -*) ;; *) values= ;; esac
  COMPREPLY=($(compgen -W "${{values:-$(_onehop_words "$place")}}" -- "$current"))
}}
complete -o default -F _onehop onehop
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_FISH = """\
function __onehop_words
  switch "$argv[1]"
{cases}
  end
end
function __onehop_complete
  set -l before (commandline -opc)
  set -l place onehop
  for word in $before[2..-1]
    if not string match -q -- '-*' $word; and contains -- $word (__onehop_words "$place")
      set place "$place $word"
    end
  end
  set -l values (__onehop_words "$place $before[-1]")
  if string match -q -- '-*' $before[-1]; and test (count $values) -gt 0
    string join \\n $values
  else
    __onehop_words "$place"
  end
end
complete -c onehop -a '(__onehop_complete)'
"""


@dataclass(kw_only=True)
class Completion(Options):
    shell: str = argument("SHELL", "The shell: bash, zsh or fish.", choices=_SHELLS)


def words(part: Command | Group = COMMANDS, path: str = "onehop") -> Iterator[tuple[str, list[str]]]:
    """Yield each place, such as "onehop run", with its commands or options, and each option with its values."""
    if isinstance(part, Group):
        more = ["help", "--version"] if path == "onehop" else []
        found = {
            name: one
            for name, one in part.commands.items()
            if name != "bench" or find_spec("onehop_bench") is not None
        }
        yield path, [*found, *more, "--help"]
        for name, one in found.items():
            yield from words(one, f"{path} {name}")
        return
    fields = [field for field in fields_of(part.options) if not field.option.positional]
    named = [name for field in fields for name in (*field.names, field.option.off) if name.startswith("--")]
    yield path, [*named, "--help"]
    for field in fields:
        for name in field.names if field.option.choices else ():
            yield f"{path} {name}", [str(choice) for choice in field.option.choices]


def completion(options: Completion) -> None:
    """Print a script that completes commands, options and values in a shell.

    For bash, add `eval "$(onehop completion bash)"` to ~/.bashrc; for zsh, the same with zsh to ~/.zshrc; for fish, run
    `onehop completion fish >~/.config/fish/completions/onehop.fish`.
    """
    places = list(words())
    if options.shell == "fish":
        lines = [
            f"    case '{place}'\n      string split ' ' -- '{' '.join(found)}'" for place, found in places
        ]
        print(_FISH.format(cases="\n".join(lines)), end="")
        return
    lines = [f'    "{place}") echo "{" ".join(found)}" ;;' for place, found in places]
    print((_ZSH if options.shell == "zsh" else "") + _BASH.format(cases="\n".join(lines)), end="")
