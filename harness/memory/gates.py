"""What never rises above raw.md: notes that give orders to their reader, hide text, or hold a secret. Pure.

`gated` says what is wrong with a note, for every way in: a note of a run, a reply, a line that was appended by hand. The rules
look for the form of an attack (an order about the reader's instructions, a role tag, hidden characters, encoded text), never
for a bare word such as "ignore" or "always", which honest notes have. docs/memory.md has the measured hits and false alarms.
"""

from __future__ import annotations

import re
import unicodedata

from harness.base import redaction
from harness.memory.words import words

MASKED = "[masked: "
SECRET = "a secret"
LONGEST_LOOKED_AT = 4096  # characters; a note has at most 1000

# Characters that no reader sees: tags, bidirectional overrides, zero-width ones within a word.
_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069\u2060-\u2064\u00ad]|(?<=\\w)[\u200b\ufeff\u180e](?=\\w)"
)
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u180e\u00ad\U000e0000-\U000e007f]")

_ROLE_TAG = re.compile(
    r"<\s*/?\s*(?:system|assistant|user|human|developer|instructions?|admin|tool|im_start|im_end|prompt)\b[^>]{0,40}>"
    r"|\[/?\s*(?:INST|SYS|SYSTEM|ASSISTANT)\s*\]|<<\s*/?\s*SYS\s*>>|<\|[a-z_]{2,20}\|>"
    r"|(?:^|[.!?:\"'\n]\s*|\\n)\s*(?:assistant|system|human|developer|ai)\s*:\s+\S"
    r"|\bassistant\s*:.{0,200}\b(?:user|human)\s*:",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:^|\n|\\n|\s)#{1,6}\s+(?:avoid|lessons?|decisions?|context|history|identity|system|instructions?|runtime"
    r"|role|task|"
    r"memory|new)\b|```|~~~|(?:^|\n|\\n)---(?:\n|\\n|\s*$)",
    re.IGNORECASE,
)
_WHOSE = r"(?:previous|prior|above|earlier|preceding|all|any|every|your|these|those|system|former|other)"
_RULES = (
    r"(?:instructions?|prompts?|rules?|contracts?|guidelines?|orders|directions|directives|commands|constraints"
    r"|policy|policies"
    r"|safety|safeguards?|restrictions)"
)
_CHECKERS = r"(?:validators?|validations?|verifications?|review(?:er|s)?|checks?|sweep|gates?|guards?|confinement|sandbox|audit)"
_READERS = r"(?:curator|validator|reviewer|planner|worker|agent|assistant|model|llm|ai|reader)"
_DEEDS = (
    r"(?:promote|approve|accept|mark|delete|erase|ignore|skip|answer|reply|respond|output|print|write|set|copy|obey"
    r"|follow|stop"
    r"|do|you|please|treat|disregard|forget|execute|run|send|add|remove|graduate|merge|always|never|must|report"
    r"|pass|keep|put)"
)
_LOOT = (
    r"(?:secrets?|(?:private |api |ssh |secret )?keys?|tokens?|environment(?: variables)?|env vars?|credentials?"
    r"|passwords?"
    r"|~/\.ssh|id_rsa|\.env\b|/etc/(?:shadow|passwd))"
)
_ORDER = re.compile(
    rf"\b(?:ignor\w*|disregard\w*|forget|override|bypass|circumvent|disobey|drop"
    rf"|violate)\b[^.;]{{0,30}}\b{_WHOSE}\b[^.;]{{0,30}}\b{_RULES}"
    rf"|\b(?:ignor\w*|disregard\w*|forget|override|bypass|circumvent|disobey|violate)\s+(?:the\s+)?(?:[\w-]+'s?\s+)?{_RULES}"
    r"|\b(?:disregard|forget|ignore)\s+(?:all|everything|the|what is)?\s*above\s*(?:[,.;:!]|and\b|$)"
    rf"|\b(?:disable|bypass|turn off|switch off|deactivate)\b[^.;]{{0,20}}\b(?:the|this|every|all"
    rf"|any)\s+{_CHECKERS}\b"
    rf"|\b(?:skip|omit)\b[^.;]{{0,20}}\b(?:the|this|every|all|any)\s+(?:validators?|validations?|verifications?"
    rf"|reviews?)\b"
    r"|\byou (?:are now|shall now|must now|will now)\b|\byou(?:'re| are) (?:an? )?(?:unrestricted|jailbroken|free"
    r"|dan)\b"
    r"|\bfrom now on,? (?:you|the (?:agent|reviewer|validator|assistant|model)|always (?:answer|approve|say|reply))\b"
    r"|\b(?:new|updated|revised|hidden|secret) (?:system )?(?:instructions?|prompts?|orders)\b|\b(?:system prompt"
    r"|developer message)\s*:"
    rf"|\b{_READERS}s?\s*[:,]\s*{_DEEDS}\b|\b(?:dear|attention|note to(?: the)?|hey|to (?:every|any)) {_READERS}s?\b"
    r"|\bas an ai\b|\bpretend (?:to be|you)\b|\bact as (?:an?|if|though) [^.;]{0,20}\b(?:admin|root|unrestricted"
    r"|assistant)\b"
    r"|\b(?:mark|report|declare|treat|consider|set|count|accept|approve)\b[^.;]{0,40}\b(?:features?|claims?|checks?"
    r"|missions?|tests?"
    r"|everything|it|work|tasks?)\b[^.;]{0,15}\b(?:as )?(?:passed|done|proven|verified|complete[d]?|green"
    r"|successful|finished)\b"
    r"|\b(?:and|always|then|just|simply) report success\b|\b(?:approve|accept|pass) (?:every|all|any)(?:thing)?\b"
    r"|\bwithout (?:looking|validation|verification)\b"
    r"|\b(?:answer|reply|respond|say|output|return)\w*\b[^.;]{0,15}[\"'“](?:verified|done|passed|approved|ok|yes"
    r"|success)\b"
    rf"|\b(?:send|post|upload|leak|exfiltrate|e-?mail|copy|transmit|forward"
    rf"|publish)\b[^.;]{{0,50}}\b{_LOOT}[^.;]{{0,60}}\b(?:to|at|into)\b"
    r"|\b(?:send|post|upload|leak|exfiltrate)\b[^.;]{0,30}\b(?:to|at)\b[^;]{0,30}\b(?:evil|attacker|external server)"
    r"|\b(?:print|cat|show|reveal|dump|read|display|output|include)\b[^.;]{0,40}(?:~/\.ssh|id_rsa|/etc/shadow"
    r"|\bsystem prompt"
    r"|\byour (?:instructions|prompt|rules))"
    r"|\bevil\.|\b(?:delete|erase|remove|wipe)\b[^.;]{0,25}\b(?:all|every|other)\b[^.;]{0,25}\b(?:memor(?:y|ies)"
    r"|lessons?|entries|identit"
    r"(?:y|ies)|notes|rules|lines?)\b|\b(?:delete|wipe|erase|rm -rf)\b[^.;]{0,20}\.harness\b"
    r"|\b(?:the following|this (?:line|note|message|entry)) (?:overrides?|replaces|supersedes|takes precedence)\b"
    r"|\b(?:system|admin|root|developer|god) (?:override|mode)\b"
    r"|\byour (?:real|true|actual|new|only) (?:task|goal|job|purpose|mission|role|instructions?)\b|\b(?:do not"
    r"|don't|never) (?:tell|inform|mention|reveal|show)\b[^.;]{0,30}\b(?:user|person|human|operator|owner|anyone"
    r"|validator|reviewer)"
    r"|\b(?:hide|conceal|keep)\b[^.;]{0,30}\bfrom the (?:user|person|human|operator|owner|validator|reviewer)"
    r"|\b(?:you|agents?) (?:have|has) been (?:authori[sz]ed|instructed|ordered)"
    r"|\b(?:whoever|anyone who|any (?:agent|model) that|if you(?: can)?|when you) (?:are |is )?(?:reads?|reading"
    r"|sees?) this\b|\b(?:all|every|any) agents?\b[^.;]{0,20}\b(?:must|shall|should|have to)\b"
    r"|\bstop following\b|\b(?:wget|curl)\b[^;]{0,80}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
    r"|\bbase64 (?:-d|--decode)\b[^;]{0,20}\|\s*(?:ba)?sh\b|\brm -rf (?:/|~|\$HOME|\*)(?:\s|$|[\"'])"
    r"|!\[[^\]]*\]\(https?:[^)]*\?|javascript:|data:text/html|\x1b\["
    r"|\b(?:replace|change|make|turn|let)\b[^.;]{0,20}\b(?:every|all|each"
    r"|any)\b[^.;]{0,12}\bchecks?\b[^.;]{0,30}\b(?:true|exit 0|pass|green|succeed)"
    r"|\balways (?:reply|answer|respond|return|say|vote|approve|pass)\b[^.;]{0,30}\b(?:done|verified|passed"
    r"|approved|green|yes|ok)\b|\bno (?:validation|verification|review|checks?) (?:is|are) (?:needed|required"
    r"|necessary)\b"
    r"|\bpromote (?:this|me)\b|\bpromote\b[^.;]{0,20}\bto (?:every|all|the) identit",
    re.IGNORECASE,
)
_OTHER_TONGUES = re.compile(
    r"(?:ignorier|vergiss|vergesst|missachte|übergeh|umgeh)\w*[^.;]{0,40}(?:anweisung|regel|vorgabe|befehl"
    r"|instruktion|prompt)"
    r"|(?:du bist (?:jetzt|nun|ab jetzt)|ab (?:jetzt|sofort) (?:musst|sollst|bist|antworte|bestätige))"
    r"|lösche[^.;]{0,30}\.harness"
    r"|(?:überspring|deaktivier|schalte)\w*[^.;]{0,30}(?:prüfung|validier|validator|überprüfung)"
    r"|(?:markiere|melde|bestätige)\w*[^.;]{0,40}(?:als )?(?:bestanden|erledigt|fertig|bewiesen|erfolgreich|erfolg)\b"
    r"|(?:sende|schick|übermittle)\w*[^.;]{0,40}(?:schlüssel|geheimnis|passw|zugangsdaten|umgebungsvariabl|token)"
    r"|(?:ignore[zr]?|oublie[zr]?)[^.;]{0,30}(?:instructions|consignes|règles)|(?:ignora|olvida"
    r"|ignore)[^.;]{0,30}(?:instrucciones|reglas|instruções|istruzioni)"
    r"|(?:忽略|无视|忘记|忘掉|违反|绕过)[^。；]{0,20}(?:指令|指示|规则|提示|约束|要求|命令|说明)"
    r"|(?:从现在起|从现在开始|现在起)[^。；]{0,6}(?:你|必须)|你现在是|系统提示"
    r"|(?:跳过|关闭|禁用|绕过|不要(?:进行|做)?|省略)[^。；]{0,10}(?:验证|校验|审核|检查器|评审)"
    r"|(?:标记|报告|宣布|视)[^。；]{0,20}(?:为)?(?:通过|完成|成功|已验证)"
    r"|(?:发送|上传|泄露|提交)[^。；]{0,20}(?:外部|服务器|攻击|邮箱)"
    r"|把[^。；]{0,12}(?:密钥|密码|令牌|环境变量|凭证)[^。；]{0,12}(?:发|传|写|打印|输出)"
    r"|(?:指示|命令|指令|ルール|規則|プロンプト)[^。；]{0,14}(?:無視|忘れ|従わ|破)|(?:無視|忘れ)[^。；]{0,10}(?:指示|命令|ルール)"
    r"|(?:検証|レビュー|確認|審査)[^。；]{0,8}(?:省略|スキップ|飛ば|無効|しないで)|(?:合格|完了|成功)[^。；]{0,8}(?:として|と)(?:報告|記録|マーク)"
    r"|あなたは(?:今|これ)から|(?:秘密|鍵|キー|トークン|パスワード|環境変数)[^。；]{0,14}(?:送信|送っ|アップロード|出力)"
    r"|(?:이전|모든)[^.]{0,12}(?:지시|명령|규칙)[^.]{0,10}무시|игнорируй[^.]{0,30}(?:инструкц|указан|правил)",
    re.IGNORECASE,
)
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ ]?|\\x[0-9a-fA-F]{2}){20,}")
_SPACED = re.compile(r"(?:\b\w[ .*_-]){5,}\w\b")
_MIXED = re.compile(
    r"[A-Za-z][\u0370-\u03ff\u0400-\u04ff][A-Za-z]|[\u0400-\u04ff][A-Za-z]{2,}|[A-Za-z]{2,}[\u0400-\u04ff]"
)  # letters that look like Latin ones
PROSE = 0.75  # share of letters and blanks in what is text, once decoded
FEWEST_BLANKS = 2

# A password in a sentence, in the languages in which people note one. `secret` is the value.
_KEYWORD = (
    r"(?:\bpass(?:word|phrase|code|wd)s?\b|\bpwd\b|\bpin\b|\bcredentials?\b|\bcreds\b|\bsecret\b|\blogin\b"
    r"|\bpasswor[td]\b|kennwort|zugangs(?:code|daten)"
    r"|mot de passe|contraseña|\bsenha\b|\bwachtwoord\b|\blösenord\b|\bhasło\b|парол[ья]|密\s?[码碼]|口令|パスワード|暗証番号"
    r"|비밀번호|암호)"
)
_NOT_OF = r"(?:hash|field|column|polic|length|input|encod|stor|reset|rule|form\b|check|algorithm|manager|prompt|label|strength)"
_GAP = rf"(?:(?!{_NOT_OF})[^.;。；\n]){{0,40}}?"
_IS = (
    r"(?:\bis(?: now| still)?\b|\bare\b|\blautet\b|\bist\b|\bheißt\b|\best\b|\bes\b|\bé\b|\bwas\b|=|:|：|是|为|為|は|が|는|은"
    r"|\bset to\b|\bto\b|\bwith\b|\bmit\b|\busing\b|\bsind\b|\bson\b)"
)
_VALUE = r"[\"'“‘「`]?(?P<secret>(?=[!-~]*[A-Za-z])(?=[!-~]*[0-9!@#$%^&*+?])[A-Za-z0-9!@#$%^&*+?._~/-]{5,64})"
_PASSWORD = re.compile(rf"{_KEYWORD}{_GAP}{_IS}\s*{_VALUE}", re.IGNORECASE)
_BESIDE = re.compile(rf"{_KEYWORD}\s*[\"'“‘「`(]?\s*{_VALUE}", re.IGNORECASE)
_BEFORE = re.compile(
    rf"(?<![\w./-]){_VALUE}[\"'”’」`]?\s*(?:is|ist|est|es|是|は|as|als|を|作为)"
    rf"\s*(?:(?:the|our|my|das|der|le|la|el)\s+)?(?:\w+\s+){{0,2}}?{_KEYWORD}",
    re.IGNORECASE,
)
_PAIR = re.compile(
    rf"\b(?:creds|credentials|log ?in|sign in|user|admin|root|benutzer|账号|帐号"
    rf"|用户)\b[^.;\n]{{0,24}}?[\w.@-]{{2,32}}\s?[/:]\s?{_VALUE}",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"(?:sha|md|argon|utf|base|ipv?|http|oauth|bcrypt|scrypt|pbkdf|varchar|int|char|text|pkcs|aes|rsa|v|es|p|step"
    r"|line|rfc)-?\d[\w.-]*"
    r"|[\d.,:/-]+\w{0,3}|[a-z_.-]+[!?.,*]|.*(?:\(|\$\{|\{\{|<|%s).*|[A-Z_]+\d?|(?:https?|file)?:?//.*|\$\w+"
    r"|.*/.*/.*|[\w./-]+\.(?:py|js|ts|md|json|ya?ml|toml|txt|env|sh)",
)


# A pattern is tried where one of its hints is in the small letters of the text: the search for hints is 50 times as fast.
_ORDER_HINTS = (
    "ignor+disregard+forget+overrid+bypass+circumvent+disobey+drop+violate+disable+turn off+switch off+"
    "deactivate+skip+omit+you +you'+from now on+instruction+prompt+ orders+developer+curator+validator+reviewer+"
    "planner+worker+agent+assistant+model+llm+ai+reader+attention+pretend+act as+mark+report+declare+treat+"
    "consider+approve+accept+without +answer+repl+respond+say+output+return+send+post+upload+leak+exfil+mail+"
    "forward+publish+transmit+.ssh+id_rsa+/etc/+evil+delete+erase+wipe+promote+following+this +mode+your +tell+"
    "inform+mention+reveal+show+hide+conceal+whoever+no-verify+--force+| +|sh+|bash+rm -rf+![+javascript:+"
    "data:text+\x1b+check+always +no validation+no verification+no review+set+count"
).split("+")
_TONGUE_HINTS = (
    "ignor+vergiss+vergesst+missacht+umgeh+markier+melde+sende+schick+oubli+olvid+deaktiv+schalte+du bist+"
    "ab jetzt+ab sofort"
).split("+")
_SECRET_HINTS = (
    "pass+pwd+pin+cred+secret+login+log in+sign in+kennwort+zugang+contrase+senha+wachtwoord+lösenord+hasło+user+"
    "admin+root+benutzer"
).split("+")


def gated(text: str) -> str:
    """Why a note may not rise above raw.md, in a few words; "" for one that may."""
    text = text[:LONGEST_LOOKED_AT]
    if MASKED in text or redaction.found(text) or password(text):
        return SECRET
    if _HIDDEN.search(text):
        return "hidden characters"
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    if _MIXED.search(seen):
        return "letters that look like others"
    seen = _SPACED.sub(lambda found: re.sub(r"[ .*_-]", "", found.group()), seen)
    if _ROLE_TAG.search(seen):
        return "a role tag"
    if _HEADING.search(seen):
        return "a heading or a code fence"
    low = seen.lower()
    foreign = not seen.isascii() or any(hint in low for hint in _TONGUE_HINTS)
    if (any(hint in low for hint in _ORDER_HINTS) and _ORDER.search(seen)) or (foreign and _OTHER_TONGUES.search(seen)):
        return "orders to its reader"
    return "encoded text" if _is_encoded(seen) else ""


def masked(text: str) -> str:
    """The text with its secrets replaced, also those that only a sentence tells."""
    found = password(text)
    return redaction.mask(text.replace(found, f"{MASKED}password]") if found else text)


def password(text: str) -> str:
    """The password that a sentence tells, "" if there is none."""
    low = text.lower()
    if text.isascii() and not any(hint in low for hint in _SECRET_HINTS):
        return ""
    for pattern in (_PASSWORD, _BESIDE, _BEFORE, _PAIR):
        for found in pattern.finditer(text):
            value = found["secret"].rstrip(".,;:!?")
            if text[: found.start("secret")].endswith(MASKED):
                continue
            if len(value) >= 5 and not value.isdigit() and not _NO_VALUE.fullmatch(value):
                return value
    return ""


def _is_encoded(text: str) -> bool:
    """Whether a part of the text is prose, encoded in base64 or hexadecimal."""
    import base64
    import binascii

    for found in _BLOB.finditer(text):
        blob = found.group().rstrip("=")
        for alphabet in (base64.b64decode, base64.urlsafe_b64decode):
            try:
                if _is_prose(alphabet(blob + "=" * (-len(blob) % 4))):
                    return True
            except (ValueError, binascii.Error):
                continue
    for found in _HEX.finditer(text):
        digits = re.sub(r"[^0-9a-fA-F]", "", found.group().replace("\\x", ""))
        if _is_prose(bytes.fromhex(digits[: len(digits) // 2 * 2])):
            return True
    return False


def _is_prose(data: bytes) -> bool:
    """Whether these bytes are a sentence."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    plain = sum(one.isalpha() or one == " " for one in text)
    return text.count(" ") >= FEWEST_BLANKS and plain >= PROSE * len(text)


# ---- status reports

_REPORT = re.compile(
    r"^(?:\W*(?:F-\d+|VAL-[\w-]+|[A-Z]{1,5}-\d+)\b[ :,-]*(?:is |was |has been |now )?)?(?:and |now |just |i |we "
    r"|have |has |been |also |finally |then |"
    r"successfully )*(?:implement(?:ed|s|ing|ation)|add(?:ed|ing)|finish(?:ed|ing)|complet(?:ed?|ing)|done\b"
    r"|fix(?:ed|ing) (?:it|this|that|the (?:failing )?tests?|all|some|F-|a (?:few|typo|bug))|started\b|"
    r"continu(?:ed|ing)|worked|working on|refactor(?:ed|ing)|clean(?:ed|ing) up|committed|pushed|merged|rebased"
    r"|updated|created|wrote|written|looked at|read (?:the|through)"
    r"|ran\b|running\b|rerun|re-ran|verified|validated|checked|tested|reviewed|passed|passes|passing|marked|closed"
    r"|opened|moved on|moving on|deployed|released|bumped|formatted|linted"
    r"|tests? (?:pass|are (?:green|passing)|green|ok|run)|all (?:\d+ )?(?:tests?|checks?|good|green|done|claims?)"
    r"|build (?:is |was |)(?:green|passed|ok|fine|succeed|done)|lint (?:ok|passes|clean|is)"
    r"|everything (?:is |works|passes|ok|fine|green|seems)|no (?:changes?|issues?|problems?|errors?|findings?"
    r"|failures?) (?:needed|found|required|left|remain|here|so far|to report)?|nothing (?:to|new|else)"
    r"|looks? good|lgtm|wip\b|work in progress|as expected|still working|in progress|progress:|status:|update:"
    r"|summary:|pytest: \d|validator: \d|run \d+ took|\d+ (?:of \d+ )?(?:tests?|checks?|files?|claims?|passed|%))",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\b\d+ (?:tests? |checks? |of \d+ )?(?:passed|passing|ok|green|succeeded|failed, fixing)"
    r"|\btests? (?:all )?pass(?:ed|es)?(?: now)?\W*$|\b(?:failed|passed) at the (?:first|second|third) attempt"
    r"|(?:测试|检查|テスト|検査)[^。]{0,12}(?:通过|成功|完了|合格|パス)"
    r"|(?:alle|sämtliche) \d* ?(?:tests?|prüfungen)[^.]{0,12}(?:grün"
    r"|bestanden|erfolgreich|ok)"
    r"|\babout \d+ ?% done|\b\d+ files? changed|\bis (?:complete|done|finished)\W*$"
    r"|^(?:实现|完成|修复|更新|提交)了|^(?:実装|完了"
    r"|修正|更新)(?:し|済)",
    re.IGNORECASE,
)
_LESSON = re.compile(
    r"\b(?:because|unless|otherwise|instead|never|always|must|should|need(?:s|ed)? to|so that|before you|or else"
    r"|only (?:if|when|with|after)|without|requires?|in order|to avoid|rather than|"
    r"prefer|do not|don't|avoid|weil|sonst|niemals|immer|muss|damit|statt)\b|[;→]|因为|否则|必须|不要|ないと|ため|必要",
    re.IGNORECASE,
)
_FIXED_BY = re.compile(
    r"\b(?:fixed|solved|cured|works?|worked|passes|passed|green) (?:by|after|with|once|when|only|via setting|if)\b",
    re.IGNORECASE,
)


_OF_FEATURE = re.compile(r"\b(?:F|VAL|ISS(?:UE)?|FEAT(?:URE)?)-\w*\d\b")
_NUMBERED = re.compile(
    r"\b\d+\s?(?:/\s?\d+)?\s?(?:%|\w+ )?\s?(?:tests?|checks?|cases|specs?|files?|lines|commits?|assertions?|claims?"
    r"|errors?|warnings?|todos?"
    r"|percent|passed|green|red|failed|skipped|of \d+)(?!\w)|\d+ ?%|[0-9]+\s?(?:个|件|本)",
    re.IGNORECASE,
)


def is_report(text: str, tag: str = "") -> bool:
    """Whether a note only says what was done, or how a check went: it tells nobody what to do."""
    if _LESSON.search(text) or _FIXED_BY.search(text):
        return False
    if _COUNTED.search(text) or _REPORT.search(text):
        return True
    rest = _OF_FEATURE.sub("", text)
    names = words(rest).names - words(rest).numbers
    if names:
        return False
    return tag == "-" or rest != text or (tag != "DECISION" and bool(_NUMBERED.search(text)))
