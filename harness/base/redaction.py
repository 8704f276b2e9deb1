"""Masks secrets by named rules before text goes to a transcript or to memory: each becomes `[masked: <rule>]`.

A rule's pattern is tried only at one of its hints (literals), so a text without secrets costs a few searches per rule, and
patterns are compiled on demand. A pattern matches from the hint on; its named group, else the whole match, is replaced.
Secrets end before quotes and backslashes, so that JSON stays JSON, escaped twice or not at all. In prose (`prose=True`: a
note, a reply, an issue) a password named in a sentence and a long key of unknown format are masked too (`passwords`).
"""

from __future__ import annotations

import binascii
import itertools
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from harness.base import console, passwords

Span = tuple[int, int, str]
Found = tuple[int, int, int, str]  # start, end, order of the rule, name of the rule

PASSWORD = "password"  # the name for what `passwords` finds
ROUNDS = 4
MAX_SKIPPED_CHARS = 64
BREAK_OF_LINE = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
UNSEEN = dict.fromkeys([*console.UNSAFE, *range(0xD800, 0xE000)])
ONE_LINE = ("title", "claim", "spec_refs", "source_issue")  # fields of replies and issues


def received(text: str) -> str:
    """Clean `text` of an agent or its programs for storage: no characters that control a terminal or reverse or hide
    text, every line break a newline, and secrets masked, even those split by such characters."""
    masked = mask(text)
    seen = re.sub(console.SEQUENCE, "", BREAK_OF_LINE.sub("\n", masked)).translate(UNSEEN)
    return masked if seen == masked else mask(seen)


def received_value(value: Any, commands: Collection[str] = (), key: str = "") -> Any:
    """Clean a JSON value of an agent for storage: every text `received`, those of ONE_LINE on one line. Values below
    the keys `commands` are executed, so they stay as they are."""
    if isinstance(value, str):
        text = value if key in commands else received(value)
        return " ".join(text.split()) if key in ONE_LINE else text
    if isinstance(value, dict):
        return {received(name): received_value(inner, commands, name) for name, inner in value.items()}
    return [received_value(inner, commands, key) for inner in value] if isinstance(value, list) else value


def mask(text: str, *, prose: bool = False) -> str:
    """Replace every secret in `text` by the name of its rule; idempotent."""
    told = passwords.find(text) if prose else ""
    if told:
        text = text.replace(told, f"[masked: {PASSWORD}]")
    plain = _plain(text)
    masked = plain
    for _ in range(ROUNDS):  # text next to a masked secret may match only now
        spans = _spans(masked)
        if not spans:
            break
        masked = _replaced(masked, spans)
    return text if masked is plain else _text(masked)


def found(text: str, *, prose: bool = False) -> list[str]:
    """Names of the rules that match, in the order of RULES."""
    names = {name for _, _, name in _spans(_plain(text))}
    known = [name for name in RULES if name in names]
    return known or ([PASSWORD] if prose and passwords.find(text) else [])


def secrets(text: str) -> list[tuple[str, int, str]]:
    """(rule, line number, secret) of every secret, from left to right."""
    plain = _plain(text)
    return [(name, plain.count("\n", 0, start) + 1, _text(plain[start:end])) for start, end, name in _spans(plain)]


def is_certain(rule: str, secret: str) -> bool:
    """Whether this is almost certainly a secret: it has a vendor's own format, and not that of a test key."""
    if rule == "private-key":
        return len(secret) >= SHORTEST_KEY
    return rule in CERTAIN and not (rule == "stripe-key" and "_test_" in secret)


def is_made_up(value: str) -> bool:
    """Whether the value is a typed example: a part of it has consecutive or repeated characters."""
    steps = [ord(two) - ord(one) for one, two in itertools.pairwise(value.lower())]
    rows = (len(list(row)) for step, row in itertools.groupby(steps) if step in (-1, 0, 1))
    return max(rows, default=0) >= TYPED_IN_A_ROW or len(set(value)) < FEWEST_CHARACTERS


def open_key(text: str) -> int:
    """The offset of a private key that is still incomplete; the text's length if there is none."""
    at = text.rfind("-----BEGIN ")
    if at < 0:
        return len(text)
    return at if re.compile(OPEN_KEY, re.ASCII).match(text, at) else len(text)


def _plain(text: str) -> str:
    """The text's UTF-8 as one character per byte: fast to search in any language, and case folding keeps positions."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text(plain: str) -> str:
    """Inverse of `_plain`."""
    return plain if plain.isascii() else plain.encode("latin-1").decode("utf-8", "surrogatepass")


def _replaced(text: str, spans: list[Span]) -> str:
    parts, done = [], 0
    for start, end, name in spans:
        parts += [text[done:start], f"[masked: {name}]"]
        done = end
    return "".join([*parts, text[done:]])


def _spans(plain: str) -> list[Span]:
    """The spans of secrets, from left to right; overlapping ones are merged, and the earlier rule names them."""
    folded = plain.lower() if plain.isascii() else plain.encode("latin-1").lower().decode("latin-1")
    rows: list[Found] = []
    for hint, any_case in _hints_in(plain, folded):
        for order, name, rule in RULES_OF[hint, any_case]:
            rows += [(start, end, order, name) for start, end in rule.spans(plain, folded if any_case else plain, hint)]
    merged: list[Found] = []
    for row in sorted(rows):
        if merged and row[0] < merged[-1][1]:
            row = _merged(merged.pop(), row)
        merged.append(row)
    return [(start, end, name) for start, end, _, name in merged]


def _merged(one: Found, two: Found) -> Found:
    """Merge two overlapping spans. With the same start, the earlier rule, which is more specific, also sets the end."""
    first = min(one, two, key=lambda row: row[2])
    end = first[1] if one[0] == two[0] else max(one[1], two[1])
    return one[0], end, first[2], first[3]


def _hints_in(plain: str, folded: str) -> list[tuple[str, bool]]:
    """The hints in the text, or in the text in lower case."""
    able = [group for gate, group in HINTS.items() if gate in plain]
    return [key for group in able for key in group if key[0] in (folded if key[1] else plain)]


class SecretRule:
    """One kind of secret. `hints` are searched as they are, `any_case` (lower case) in any case. `source` is matched at a
    hint, or `back` characters before, and not after one of the characters `inside`, except at the end of an escape. `check`
    confirms the secret."""

    def __init__(
        self,
        source: str,
        *hints: str,
        any_case: tuple[str, ...] = (),
        inside: str = "",
        back: int = 0,
        check: Callable[[str], bool] | None = None,
    ) -> None:
        self.source, self.hints, self.any_case = source, hints, any_case
        self.inside, self.back, self.check = inside, back, check
        self._pattern: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern, made on first use: compiling all of them costs 20 ms."""
        if self._pattern is None:
            left = rf"(?:(?<![{self.inside}])|(?<=\\[nrtbf])|(?<=[0-9\[]m))" if self.inside else ""
            self._pattern = re.compile(f"{left}(?:{self.source})", re.ASCII)
        return self._pattern

    def spans(self, text: str, searched: str, hint: str) -> Iterator[tuple[int, int]]:
        """This rule's secrets, for one hint; `searched` is the text in the hint's case."""
        match, at = self.pattern.match, searched.find(hint)
        while at >= 0:
            hit, goes_on = match(text, max(0, at - self.back)), at + len(hint)
            if hit:
                group = hit.lastgroup or 0
                start, end = hit.span(group)
                if self.check is None or self.check(_text(hit[group])):
                    yield start, end
                    goes_on = max(goes_on, end)
                elif end - start > MAX_SKIPPED_CHARS:  # each character is read once, so no text makes this quadratic
                    goes_on = max(goes_on, end)
            at = searched.find(hint, goes_on)


# placeholders in the position of a secret

FEWEST_CHARACTERS = 8
FEWEST_LETTERS = 16
STAND_INS = (
    r"(?i)change.?me|example|placeholder|your|insert|dummy|redacted|masked|replace|xxxx|\*\*\*|\.\.\.|…|todo|sample"
    r"|^[$%{<@&#(\[]|\$\{|\{\{|\$\(|%\(|\}$|env[.(\[]|environ|getenv|secrets\.|^(?:null|none|true|false|undefined)$"
    r"|^(?:https?|file|ftp|arn|urn|vault|op|ssm|gs|s3):|^(?:password|passwd|pass|pw|pwd|secret|token|string|hidden)\d{0,3}$"
    r"|^(?:~|\.{1,2})?/[a-z_.-]+/|^[-+]?[\d.]+(?:e[-+]?\d+)?$"
)
WORDY = r"\d+|(?:[A-Z]{2,}s?|[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)*)?[A-Z]?\d{0,4}[a-z]?"
CUTS = r"[-_./:@#+=,~^]+"


def _real(value: str) -> bool:
    """Whether it is not a placeholder such as `xxxx`, `<your key>` or `${NAME}`."""
    return len(set(value)) >= FEWEST_CHARACTERS and not re.search(STAND_INS, value)


def _random(value: str) -> bool:
    """Whether a value looks random: it mixes letters and digits unlike any word, name, version or path."""
    if not _real(value) or any(char.isspace() for char in value) or not any(char.isalpha() for char in value):
        return False
    return not all(_is_word(word) for word in re.split(CUTS, value) if word)


def _is_word(word: str) -> bool:
    """Whether it is a word, a camel-case name, a number, or a word with trailing digits."""
    if not word.isalpha():
        return re.fullmatch(WORDY, word) is not None
    turns = sum(one.islower() != two.islower() for one, two in itertools.pairwise(word))
    return len(word) < FEWEST_LETTERS or turns * 3 < len(word)


def _credentials(value: str) -> bool:
    """Whether it is base64 of `user:password`."""
    try:
        plain = binascii.a2b_base64(value + "=" * (-len(value) % 4))
    except ValueError:
        return False
    return plain.isascii() and plain.decode().isprintable() and plain.find(b":") > 0


def _password(value: str) -> bool:
    """Whether it is a password in a URL and not a placeholder."""
    return len(set(value)) > 1 and not re.search(STAND_INS, value)


# the rules

WORD = "A-Za-z0-9"
TOKEN = "A-Za-z0-9_-"
GAP = r"[ \t]{0,8}"
QUOTE = r"(?:\\{0,8}[\"'`])?"
BREAK = r"(?:\s|\\+[nrt])"
KEY_TEXT = r"(?:[A-Za-z0-9+/=\s:,.()]|\\+[nrt/]|-(?!----))"
OPEN_KEY = rf"-----BEGIN [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----{KEY_TEXT}*+\Z"
AFTER = (
    r"(?:[_.-]?(?:access|key|value|val|str|string|prod|production|dev|test|staging|stage|live|main|primary|secondary"
    r"|old|new|b64|base64|\d{1,3})){0,3}"
)
TYPED = r":[ \t]{0,3}[A-Za-z]{1,20}(?:[ \t]?\|[ \t]?[A-Za-z]{1,20})?[ \t]{0,3}="
SETS = (
    rf"(?i:{AFTER}{QUOTE}\]?{GAP}(?:{TYPED}|:=|=>|={{1,3}}|:|>|,(?={GAP}[\"'\\])"
    r"|(?<=password )(?=['\"])|(?<=identified by )(?='))[ \t]{0,8})"
)
VALUE = (
    r"(?:(?<!\\)\"(?![,:\]}])(?P<double>(?:[^\"\\\n]|\\[^\n]){8,512}+)\"|(?<!\\)'(?P<single>[^'\"\\\n]{8,512}+)'"
    rf"|{QUOTE}(?P<bare>[^\s\"'`\\,;&<>(){{}}\[\]|]{{8,512}}+)(?![(\[{{\x80-\xbf]))"
)
KINDS = ("api", "access", "private", "auth", "signing", "encryption", "master", "account", "service", "storage")
KEYS = (
    "(?:(?<=[_-])(?:"
    + "|".join(f"(?<={kind}_)|(?<={kind}-)" for kind in KINDS)
    + ")|(?<=[ish])(?:(?<=api)|(?<=access)|(?<=auth)))key"
)
NAMES = (
    r"(?i:passw(?:or)?d|passphrase|(?<=[_.])pwd|secret|(?<!page)(?<!page_)(?<!continuation)token|credentials?"
    rf"|identified by[ ](?=')|{KEYS})"
)
NAMED = ("passw", "passphrase", "pwd", "secret", "token", "credential", "key")
DATABASES = r"postgres postgresql mysql mariadb mongodb mongodb\+srv redis rediss amqp amqps clickhouse mssql sqlserver"
IN_DATABASES = "|".join(f"(?<={name})" for name in DATABASES.split(" "))
IN_URL = r":\\*/\\*/[^\s/?#@:\"'\\<>`]{0,128}+:(?P<secret>[^\s/@\"'\\<>`]{1,256}+)@"
URLS = ("://", ":\\/\\/")
VENDORS = (  # of tokens of 24 to 190 more characters, see docs/threat-model.md
    "gsk_|xai-|lin_api_|figd_|shpat_|nvapi-|r8_|tvly-|ntn_|pplx-|sbp_|dckr_pat_|ATATT3x|llx-|AGE-SECRET-KEY-1|hvs.|dapi"
)

RULES = {
    "private-key": SecretRule(
        rf"-----BEGIN [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----(?:(?P<whole>{KEY_TEXT}{{16,16384}}+)(?=-----END)"
        rf"|{BREAK}*(?:(?:Proc-Type|DEK-Info|Version|Comment): ?[\w ,.-]{{1,80}}{BREAK}+)*+"
        rf"(?P<cut>[A-Za-z0-9+/=]{{16,}}+(?:{BREAK}++[A-Za-z0-9+/=]{{16,}}+)*+(?:{BREAK}*+[A-Za-z0-9+/=]{{1,15}}+(?=\s*\Z))?))",
        "-----BEGIN ",
    ),
    "anthropic-key": SecretRule(rf"sk-ant-[{TOKEN}]{{20,}}+", "sk-ant-", inside=TOKEN, check=_real),
    "openai-key": SecretRule(rf"sk-[{TOKEN}]{{20,}}+", "sk-", inside=TOKEN, check=_random),
    "google-key": SecretRule(rf"AIza[{TOKEN}]{{35}}(?![{TOKEN}])", "AIza", inside=WORD, check=_real),
    "google-oauth": SecretRule(rf"(?:ya29\.|GOCSPX-)[{TOKEN}]{{20,}}+", "ya29.", "GOCSPX-", inside=WORD, check=_real),
    "github-token": SecretRule(
        r"gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_\w{50,}+", "gh", "github_pat_", inside=WORD, check=_real
    ),
    "gitlab-token": SecretRule(rf"gl(?:pat|rt)-[.{TOKEN}]{{20,}}+", "glpat-", "glrt-", inside=WORD, check=_random),
    "slack-token": SecretRule(r"x(?:ox[abceoprs]|app)-[A-Za-z0-9-]{10,}+", "xox", "xapp-", inside=WORD, check=_random),
    "slack-webhook": SecretRule(
        r"hooks\.slack\.com\\*/[a-z]{1,16}\\*/(?P<secret>(?:[\w-]|\\*+/){20,}+)", "hooks.slack.com", check=_real
    ),
    "aws-key-id": SecretRule(r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])", "IA", back=2, inside=WORD, check=_real),
    "aws-secret": SecretRule(
        rf"(?i:secret[_-]?access[_-]?key){SETS}{QUOTE}(?P<secret>[A-Za-z0-9+/]{{40}})(?![A-Za-z0-9+/=])",
        any_case=("secret",),
        check=_real,
    ),
    "stripe-key": SecretRule(
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+", "_live_", "_test_", back=2, inside=WORD, check=_real
    ),
    "webhook-secret": SecretRule(r"whsec_[A-Za-z0-9+/]{24,}+={0,2}", "whsec_", inside=WORD, check=_real),
    "npm-token": SecretRule(rf"npm_[A-Za-z0-9]{{36}}(?![{TOKEN}])", "npm_", inside=WORD, check=_real),
    "pypi-token": SecretRule(rf"pypi-AgE[{TOKEN}]{{30,}}+", "pypi-AgE", inside=WORD, check=_real),
    "huggingface-token": SecretRule(r"hf_[A-Za-z0-9]{30,}+", "hf_", inside=WORD + "_", check=_random),
    "sendgrid-key": SecretRule(rf"SG\.[{TOKEN}]{{16,32}}\.[{TOKEN}]{{32,64}}", "SG.", inside=WORD, check=_real),
    "twilio-key": SecretRule(r"SK[0-9a-f]{32}(?![A-Za-z0-9])", "SK", inside=WORD, check=_real),
    "digitalocean-token": SecretRule(r"do[opr]_v1_[0-9a-f]{64}", "_v1_", back=3, inside=WORD, check=_real),
    "telegram-token": SecretRule(rf"(?<=\d{{8}}):(?P<secret>AA[{TOKEN}]{{33}})(?![{TOKEN}])", ":AA", check=_real),
    "azure-key": SecretRule(
        r"(?i:(?:(?<=account)|(?<=sharedaccess))key)=(?P<key>[A-Za-z0-9+/]{40,}+={0,2})", any_case=("key",), check=_real
    ),
    "azure-signature": SecretRule(r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,}+={0,2})", "sig=", check=_real),
    "vendor-token": SecretRule(
        rf"(?:{VENDORS})[{TOKEN}]{{24,}}+(?:=[0-9A-F]{{8}})?", *VENDORS.split("|"), inside=TOKEN, check=_random
    ),
    "jwt": SecretRule(rf"eyJ[{TOKEN}]{{10,}}+(?:\.[{TOKEN}]{{4,}}+){{2,4}}+", "eyJ", inside="." + TOKEN, check=_real),
    "database-url": SecretRule(f"(?:{IN_DATABASES}){IN_URL}", *URLS, check=_password),
    "url-password": SecretRule(IN_URL, *URLS, check=_password),
    "bearer": SecretRule(
        r"(?i:bearer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)", any_case=("bearer ",), inside=WORD, check=_random
    ),
    "basic": SecretRule(
        r"(?i:basic)[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})(?![A-Za-z0-9_-])",
        any_case=("basic ",),
        inside=WORD,
        check=_credentials,
    ),
    "authorization": SecretRule(
        rf"(?i:authorization{QUOTE}\]?{GAP}[:=,]{GAP}{QUOTE}(?:(?:token|apikey|api-key|key|bot)[ ])?)"
        r"(?P<secret>[^\s\"'`\\,;&<>(){}\[\]|]{16,512}+)",
        any_case=("authorization",),
        check=_random,
    ),
    "cookie": SecretRule(
        rf"(?i:cookie{QUOTE}{GAP}[:,]{GAP}{QUOTE})[\w.-]{{1,64}}=(?P<secret>[A-Za-z0-9%._~+/=-]{{16,512}}+)",
        any_case=("cookie",),
        check=_random,
    ),
    "user-option": SecretRule(
        r"-(?:u|-user|-proxy-user)[ =]?(?:\\{0,8}[\"'])?[\w.@-]{1,64}:(?P<secret>[^\s\"'\\]{8,128}+)",
        "-u ",
        "--user ",
        "--user=",
        "--proxy-user ",
        inside=TOKEN,
        check=_random,
    ),
    "docker-login": SecretRule(
        rf"auth{QUOTE}{GAP}:{GAP}{QUOTE}(?P<secret>[A-Za-z0-9+/]{{12,}}+={{0,2}})(?![A-Za-z0-9_-])",
        'auth":',
        'auth\\":',
        inside=TOKEN,
        check=_credentials,
    ),
    "netrc": SecretRule(
        rf"login{BREAK}{{1,4}}[^\s\\]{{1,64}}{BREAK}{{1,4}}password{BREAK}{{1,4}}(?P<secret>[^\s\"'\\]{{8,128}}+)",
        "login ",
        "login\n",
        "login\\n",
        inside=TOKEN,
        check=_random,
    ),
    "mysql-option": SecretRule(
        r"mysql(?:dump|admin)?[ ](?:[^\s\"'\\]{1,64}[ ]+){0,8}?-p(?P<secret>[^\s\"'\\]{8,64}+)", "mysql", check=_random
    ),
    "option": SecretRule(
        rf"--(?:[a-z]{{2,16}}-){{0,3}}(?:{NAMES}|key){AFTER}[ =]{QUOTE}{VALUE}", "--", inside="-", check=_random
    ),
    "assignment": SecretRule(NAMES + SETS + VALUE, any_case=(*NAMED, "identified by '"), check=_random),
}

# rules whose format alone is proof; not those of test keys, of publishable keys, and of values next to a name
CERTAIN = {
    *("private-key", "anthropic-key", "openai-key", "google-oauth", "github-token", "gitlab-token", "slack-token"),
    *("slack-webhook", "aws-key-id", "aws-secret", "stripe-key", "webhook-secret", "npm-token", "pypi-token"),
    *("huggingface-token", "sendgrid-key", "digitalocean-token", "telegram-token", "azure-key", "vendor-token"),
}
SHORTEST_KEY = 60  # characters of a private key without its first and last line; an Ed25519 one has 64
TYPED_IN_A_ROW = 5  # steps such as those of `abcdef` or `000000`: by chance in one of 10,000 keys


# the start of the search

GATES = ("@", "_", "=", ":", "-", ".", " ")  # one character is found 20 times as fast as two
RULES_OF: dict[tuple[str, bool], list[tuple[int, str, SecretRule]]] = {}
HINTS: dict[str, list[tuple[str, bool]]] = {}
for _order, (_name, _rule) in enumerate(RULES.items()):
    for _key in [*((hint, False) for hint in _rule.hints), *((hint, True) for hint in _rule.any_case)]:
        RULES_OF.setdefault(_key, []).append((_order, _name, _rule))
for _key in RULES_OF:
    _gate = "@" if "/" in _key[0] else next((gate for gate in GATES if gate in _key[0]), "")
    HINTS.setdefault(_gate, []).append(_key)
