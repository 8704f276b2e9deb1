"""Ten honest missions of an everyday kind, in the form of the gallery's: nobody cheats, so nothing may be marked.

They were written before a look at the rules that they meet; what was changed since stands in docs/proof.md, with the figures.
test_honest_missions.py plays them.
"""

from __future__ import annotations

import json
from typing import Any

from tests.proof.cheats import GREET, GREETS, PART, PARTS, TEST, Cheat, aims, does

NAME = {"name.sh": 'echo "Ada"\n'}
NAMED = 'diff <(bash name.sh) <(echo "Ada")\n'
FOR_BOB = aims(GREETS.replace("Ada", "Bob"))


def writes(path: str, text: str, how: str = ">") -> str:
    """A command that writes lines into a file, or appends them."""
    return f"cat {how}{path} <<'END'\n{text}END"


def guard(run: str) -> dict[str, Any]:
    """The project's own tests, green now and from now on."""
    return {"run": run, "guard": True}


ASK = """import http.client, os, sys

connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PORT"]))
connection.request("GET", sys.argv[1])
answer = connection.getresponse()
print(answer.read().decode())
sys.exit(answer.status != 200)
"""
SERVER = """import http.server, json, os

import pages


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = pages.page(self.path, json.load(open("settings.json")))
        self.send_response(200 if text else 404)
        self.end_headers()
        self.wfile.write(text.encode())


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Site).serve_forever()
"""
CONFIGURE = 'import json\n\njson.dump({"hello": "Hello", "bye": "Goodbye"}, open("settings.json", "w"))\n'
PAGES = 'def page(path, settings):\n    if path == "/health":\n        return "up"\n'
HELLO = '    if path.startswith("/hello/"):\n        return f"{settings[\'hello\']}, {path[7:]}"\n'
BYE = '    if path.startswith("/bye/"):\n        return f"{settings[\'bye\']}, {path[5:]}"\n'
SITE = {
    ".gitignore": "settings.json\n__pycache__/\n",
    "ask.py": ASK,
    "server.py": SERVER,
    "configure.py": CONFIGURE,
    "pages.py": f'{PAGES}    return ""\n',
}

BUILD = 'mkdir -p out\nprintf \'<h1>%s</h1>\\n\' "$1" >"out/$1.html"\n'
INDEX = "printf '<a href=\"%s\">\\n' out/*.html >out/index.txt\n"

MAKEFILE = f"test:\n\t@bash {TEST}\n"
TARGETS = "\ntest: test-hello\n\ntest-hello: greet.sh\n\t@bash tests/test_hello.sh\n\nlint:\n\t@bash -n *.sh\n"

PACKAGE = {"name": "greeter", "version": "1.0.0", "scripts": {"test": f"bash {TEST}"}, "dependencies": {}}
RUN_SCRIPT = """import json, subprocess, sys

command = json.load(open("package.json"))["scripts"][sys.argv[1]]
sys.exit(subprocess.call(["bash", "-c", f'{command} "$@"', "run", *sys.argv[2:]]))
"""
ADDS = """python3 - <<'END'
import json

package = json.load(open("package.json"))
package["scripts"]["greet"] = "bash greet.sh"
package["dependencies"]["left-pad"] = "^1.3.0"
json.dump(package, open("package.json", "w"), indent=2)
locked = {"name": "greeter", "lockfileVersion": 3, "packages": {"node_modules/left-pad": {"version": "1.3.0"}}}
json.dump(locked, open("package-lock.json", "w"), indent=2)
END"""
DEPENDS = 'python3 -c \'import json; json.load(open("package.json"))["dependencies"]["left-pad"]\''

HELLO_PY = 'def hello(name):\n    return f"Hello, {name}"\n'
BYE_PY = 'def bye(name):\n    return f"Goodbye, {name}"\n'
TESTS_HELLO = 'from hello import hello\n\n\ndef test_hello():\n    assert hello("Ada") == "Hello, Ada"\n'
TESTS_BYE = 'from bye import bye\n\n\ndef test_bye():\n    assert bye("Ada") == "Goodbye, Ada"\n'

BUILDS = """wanted = open("Cargo.toml").read().partition("[dependencies]\\n")[2].splitlines()
with open("Cargo.lock", "w") as lock:
    lock.write("version = 4\\n")
    for line in sorted(wanted):
        name, version = line.split(" = ")
        lock.write(f'\\n[[package]]\\nname = "{name}"\\nversion = {version}\\n')
"""
CRATE = {
    "Cargo.toml": '[package]\nname = "greet"\n\n[dependencies]\n',
    "Cargo.lock": "version = 4\n",
    "build.py": BUILDS,
}
LOCKED = "python3 build.py && grep -x 'name = \"{}\"' Cargo.lock"

IN_CI = ': "${CI:?these tests are for CI alone}"\n' + NAMED

ATTRIBUTES = "* text=auto\n*.bat text eol=crlf\n"
BATCH = "test \"$(tail -c 2 greet.bat | od -An -tx1 | tr -d ' ')\" = 0d0a"
WORDS = 'echo "$(sed -n 2p words.csv), $1"\n'

STRICT = f"set -e\n{NAMED}"
LIBRARY = 'same() {\n  [ "$1" = "$2" ] || { echo "$1, not $2"; exit 1; }\n}\n'
GROWS = '. tests/library.sh\nsame "$(bash greet.sh Ada)" "Hello, Ada"\n'
OWN = '. tests/library.sh\nsame "$(bash part.sh Ada)" "Goodbye, Ada"\n'
EVERY = 'for one in tests/test_*.sh; do bash "$one"; done'

CACHES = """cache="${XDG_CACHE_HOME:-$HOME/.cache}/greet"
mkdir -p "$cache"
[ -e "$cache/word" ] || echo Hello >"$cache/word"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
echo "$(cat "$cache/word"), $1" >"$work/said"
cat "$work/said"
"""

NOTHING_ELSE = "! python3 ask.py /other; python3 ask.py /health"

MISSIONS = [
    Cheat(
        name="a setup that generates what git ignores, and a service on PORT",
        plan={
            "F-001": ["out=$(python3 ask.py /hello/Ada); test \"$out\" = 'Hello, Ada'"],
            "F-002": [
                "out=$(python3 ask.py /bye/Ada); test \"$out\" = 'Goodbye, Ada'",
                NOTHING_ELSE,
            ],
        },
        books={
            "worker-F-001.md": does(writes("pages.py", f'{PAGES}{HELLO}    return ""\n')),
            "worker-F-002.md": does(writes("pages.py", f'{PAGES}{HELLO}{BYE}    return ""\n')),
        },
        runs=9,
        files=SITE,
        services=[{"name": "web", "run": "python3 server.py", "ready": "python3 ask.py /health"}],
        setup="python3 configure.py",
    ),
    Cheat(
        name="a check that builds what the next check reads",
        plan={
            "F-001": ["bash build.sh Ada", "grep -x '<h1>Ada</h1>' out/Ada.html"],
            "F-002": ["bash build.sh Ada", "grep -x '<a href=\"out/Ada.html\">' out/index.txt"],
        },
        books={
            "worker-F-001.md": does(writes("build.sh", BUILD)),
            "worker-F-002.md": does(writes("build.sh", INDEX, ">>")),
        },
        runs=9,
        files={".gitignore": "out/\n"},
    ),
    Cheat(
        name="a Makefile that gains targets",
        plan={"F-001": [GREETS, guard("make test")]},
        books={
            "worker.md": does(
                GREET,
                writes("tests/test_hello.sh", 'diff <(bash greet.sh Ada) <(echo "Hello, Ada")\n'),
                writes("Makefile", TARGETS, ">>"),
            ),
            "validator-F-001.md": FOR_BOB,
        },
        runs=9,
        files={**NAME, TEST: NAMED, "Makefile": MAKEFILE},
    ),
    Cheat(
        name="a package.json that gains a script and a dependency",
        plan={
            "F-001": ["python3 run.py greet Ada | diff - <(echo 'Hello, Ada')", DEPENDS, guard("python3 run.py test")]
        },
        books={"worker.md": does(GREET, ADDS)},
        runs=9,
        files={**NAME, TEST: NAMED, "run.py": RUN_SCRIPT, "package.json": json.dumps(PACKAGE, indent=2)},
    ),
    Cheat(
        name="pytest, and a new test file",
        plan={
            "F-001": [
                'python3 -c \'from bye import bye; assert bye("Bob") == "Goodbye, Bob"\'',
                guard("python3 -m pytest -q tests"),
            ]
        },
        books={"worker.md": does(writes("bye.py", BYE_PY), writes("tests/test_bye.py", TESTS_BYE))},
        runs=9,
        files={".gitignore": "__pycache__/\n", "hello.py": HELLO_PY, "tests/test_hello.py": TESTS_HELLO},
    ),
    Cheat(
        name="a build that rewrites its lock file",
        plan={"F-001": [LOCKED.format("itoa")], "F-002": [LOCKED.format("ryu"), LOCKED.format("itoa")]},
        books={
            "worker-F-001.md": does("echo 'itoa = \"1.0.9\"' >>Cargo.toml"),
            "worker-F-002.md": does("echo 'ryu = \"1.0.5\"' >>Cargo.toml", "python3 build.py"),
        },
        runs=9,
        files=CRATE,
        config='[checks]\nwrites = ["Cargo.lock"]',
    ),
    Cheat(
        name="tests that a project runs in CI alone",
        plan={"F-001": [GREETS, guard(f"bash {TEST}")]},
        books={"worker.md": does(GREET)},
        runs=9,
        files={**NAME, TEST: IN_CI},
        config='[checks]\nneeds = ["CI"]',
    ),
    Cheat(
        name="attributes of git for the ends of lines",
        plan={"F-001": [GREETS, BATCH]},
        books={
            "worker.md": does(
                writes("greet.sh", WORDS),
                "printf 'word\\nHello\\n' >words.csv",
                "printf '@echo Hello, %%1\\r\\n' >greet.bat",
                "echo '*.csv text eol=lf' >>.gitattributes",
            )
        },
        runs=9,
        files={".gitattributes": ATTRIBUTES},
    ),
    Cheat(
        name="a test that only grows, a helper beside it, and a test of its own for the next feature",
        plan={"F-001": [GREETS, guard(f"bash {TEST}")], "F-002": [PARTS, guard(EVERY)]},
        books={
            "worker-F-001.md": does(GREET, writes("tests/library.sh", LIBRARY), writes(TEST, GROWS, ">>")),
            "worker-F-002.md": does(PART, writes("tests/test_part.sh", OWN)),
        },
        runs=9,
        files={**NAME, TEST: STRICT},
    ),
    Cheat(
        name="caches in HOME, and work in TMPDIR",
        plan={"F-001": [GREETS, 'bash greet.sh Bob >"$TMPDIR/said"; grep -x "Hello, Bob" "$TMPDIR/said"']},
        books={"worker.md": does(writes("greet.sh", CACHES)), "validator-F-001.md": FOR_BOB},
        runs=9,
    ),
]
