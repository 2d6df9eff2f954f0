"""Names that say credential, in many languages and spellings, and what they say about the value."""

from __future__ import annotations

import re

import msgspec

from nanoclaw_memory.intake.secret_values import CHOSEN, RANDOM, verbose

# People choose these themselves, and a plain word may do. They may stand anywhere in an identifier, and be misspelt.
_PEOPLE = r"""pass(?:wd|phrase|code|wort|w[öo]rter|key(?!s))|p[as]{2,4}[wor0]{2,4}d|pswd|kennw[oö]rt
    |identified[ ]by
    |key[\s_-]?material|contrase(?:[ñn]|ny)a|contrasinal|pasahitza|senha|palavra[\s-]passe|mot[\s_-]de[\s_-]passe
    |code[ ](?:secret|d['’]acc[eè]s)|wachtwoord|l[öo]senord|passord|lykilor[ðd]|kodeord|adgangskode|salasana
    |salas[õo]na
    |has[łl]o(?![a-z])|heslo(?![a-z])|jelsz[óo]|[şs]ifre(?!n|r)|parol[ăaeę](?![a-z])|lozink[aeu]|geslo(?![a-z])
    |slapta[žz]od|kata[ ](?:sandi|laluan)|m[ậa]t[ ]kh[ẩa]u|парол[ьяюіа]|лозинк|סיסמ[אה]|كلمة\s(?:المرور|السر)
    |رمز\sعبور|گذرواژه
    |पासवर्ड|পাসওয়ার্ড|கடவுச்சொல்|รหัสผ่าน|κωδικ[οό]|密[码碼]|口令|パスワード|暗証番号|비밀번호|비번|암호|패스워드
    |digicode|clave|(?:clé|chiave|chave)[ ](?:d\w{1,2}[ ])?(?:wi-?fi|wpa|wlan|r[ée]seau|rete|rede)
    |(?:wi-?fi|wlan|wpa2?|netzwerk|network)[\s_-]?(?:key|schl[üu]ssel)
    |(?:认证|验证|驗證)[码碼]|(?:認証|確認)(?:コード|番号)|인증번호
    |code[ -]?word|codewort|(?:secret|security)[ ]answer"""
# A code, where the line speaks of a door or of signing in.
_CODES = r"""(?-i:[a-z]{0,5}TAN|OTP)|(?:t[üu]r|tor|deur|alarm|zugangs|sicherheits|best[äa]tigungs|anmelde|freischalt
    |einmal|toegangs|verificatie|pin)?(?:code|codice|c[óo]digo|kode?|код|combo
    |combinat?ion|kombination|combinaison|combinazione)s?"""
_PLACES = verbose(
    r"""(?<![^\W\d_])(?:doors?|gates?|alarm\w*|entr(?:y|ance)|access|lock(?:box|er|s)?|padlock|key[ -]?(?:box|pad
    |safe)|safe|garage|building
    |elevator|lift|cabin|voice[ ]?mail|unlock|pairing|master|guest|t[üu]r\w*|haus\w*|tor|tresor\w*|eingang\w*
    |zugangs?\w*|zutritts?\w*
    |schlie(?:ss|ß)fach|cassaforte|port[ae]|portail|cancello|ingresso|puerta|caja|coffre|immeuble|allarme
    |acc[eè]s\w*|deur|kluis|drzwi|sejf
    |bram[ay]|двер\w+|сейф\w*|домофон\w*|доступа|v[eé]rifi\w+|confirm\w+|log[ -]?in|sign[ -]?in|sms|text(?:ed)?
    |one[ -]time|backup|recovery|sblocco
    |2fa|mfa|authenticat\w+|security|best[äa]tigung\w*|anmelde\w*|sicherheits\w*|einmal\w*|pin\w+
    |freischalt\w*
    |connexion|iniciar?|inicio|inlog\w*|logowani\w*|weryfikac\w*|подтвержд\w*|провер\w*|входа)(?![^\W\d_])"""
)
_YOURS = verbose(r"(?:your|dein|ihr|votre|seu|tuo|tw[óo]j|ваш)[ ](?:[\w-]{1,16}[ ]){0,2}\Z")
# A code that is no credential, whatever the line speaks of.
_OTHER_CODE = verbose(
    r"""(?:error|status|exit|return|response|reason|result|zip|post(?:al)?|area|country|dial(?:ling)?|source|bar|qr
    |product|promo|discount|coupon|voucher|language|currency|color|colour|char(?:acter)?|http|fehler)[\s_-]?\Z"""
)
# These are made by machines.
_MACHINES = r"""secret|sercret|token|credential|api[\s_.-]?key|токен|トークン|토큰|令牌|密[钥鑰]|秘[钥鑰密]|金[钥鑰]
    |jeton
    |schl[üu]e?ssel|nyckel|nøgle|sleutel|klucz|ключ|anahtar"""
WORDS = rf"{_PEOPLE}|{_MACHINES}"
# Too short for that: they begin a word, or follow one that often comes before them (rootpw, userpass).
_SHORT_PEOPLE = r"pass|pwd|p/?w|psk|mdp|pin|puk|cv[vc]2?"
SHORT = rf"{_SHORT_PEOPLE}|creds?|sk|otp|jwt|pat|api|auth|bearer|cookie|sid|session(?:[\s_-]?id)?"
_BEFORE_SHORT = r"root|user|db|bind|admin|require|my|any|ssh|sql|smtp|mail|ftp|wpa|become|pg|redis|master"
KEYS = r"""access|auth(?:entication)?|private|secret|sign(?:ing|ature)?|encrypt(?:ion)?|master|account|subscription
    |licen[sc]e|activation|client|shared|storage|consumer|webhook|deploy|admin|functions?|service|security|recovery
    |app"""
NAME = verbose(
    rf"""(?P<people>{_PEOPLE})|(?P<machine>{_MACHINES})|(?<![^\W\d_])(?P<code>{_CODES})(?![^\W\d_])
    |(?:(?<![A-Za-z0-9+])|(?-i:(?<=[a-z])(?=[A-Z]))|(?:{_BEFORE_SHORT}))(?P<short>{SHORT})
     (?-i:(?![A-Za-z])|(?=[sS](?![A-Za-z]))|(?<=[a-z])(?=[A-Z]))
    |(?:{KEYS})[\s_.-]?(?P<keyed>key)
    |(?P<key>key|(?<![^\W\d_])(?:clé|chiave|llave|chave))"""
)
_ASCII_KEYWORDS = [
    *(
        "pass pasw paas psas pswd pw p/w psk mdp pin puk cvv cvc cred identified sk otp jwt pat api auth bearer "
        "cookie sid session key secret sercret token kennw contras pasahitz senha palavra cod kod wachtwoord senord "
        "salas haslo heslo jelsz ifre parol lozink geslo slapta kata jeton chiave lave chave "
        "schlu nyckel sleutel klucz anahtar comb lykilor"
    ).split(),
    " tan",
]
_OTHER_KEYWORDS = (
    "kennwö schlü nøgle hasło khẩu парол лозинк токен ключ סיסמ كلمة رمز گذر पासवर्ड পাসও கடவு รหัส κωδικ "
    "код cód 验证 驗證 認証 確認 인증 密 口令 令牌 秘 金 clé パスワード 暗証番号 トークン 비밀번호 비번 암호"
    " 패스워드 토큰"
).split()
BY_PEOPLE = verbose(rf"(?:{_PEOPLE})|(?:{_SHORT_PEOPLE})")
_AMBIGUOUS = ("pass", "pin", "auth", "session", "cookie", "sid", "sk", "pat", "api", "otp")
# These alone say little: only a random value is a credential.
_WEAK = verbose(r"sk|otp|jwt|pat|api|auth|cookie|sid|session.*|schl.*|n[yøo].*|sleutel|klucz|ключ|anahtar")
# A mask, an address in a cloud, a picture: what looks like a name is a part of it.
_INSIDE = verbose(r"(?:\[redacted:[a-z-]*|\barn:[\w:-]*|(?:base64,|[a-z0-9+/]{40})[a-z0-9+/]*)\Z")
_ENCODED_BLANK = verbose(r"%2[0-9a-f]")  # the name goes on: Node-API%20v5.svg
# lösenordet, şifresi, hasła
_INFLECTED = verbose(r"(?!less)[a-zà-ɏ]{1,4}")
_IDENTIFIER = verbose(r"(?:[_.-]?[A-Za-z0-9À-ɏ]){0,40}")
# How the word may go on and still name the credential itself.
_SAME = verbose(
    r"""s?(?:[_.-]?(?:key|value|val|token|secret|pass(?:word)?|text|string|str|base64|b64|plain|raw|prod(?:uction)?
    |dev|test|live|stag(?:e|ing)|new|old|current|default|main|admin|root|user|db|ci|env|header|any|v?\d+(?!\d)))*"""
)
# Public, or about the credential: even a random value is none.
_PUBLIC = verbose(
    r"(?:public|primary|foreign|sort|partition|idempotency|cache|hash|site|publishable|host)[\s_.-]?$"
)
# A value directly behind a public key's name, or an id's: `partition key: …`, `cluster_id = …`, `<artifactId>…`.
_OF_PUBLIC = verbose(
    r"""(?:(?:public|primary|foreign|sort|partition|idempotency|cache|shard|row)[\s_.-]?keys?
    |(?<![a-z_-])(?![a-z_-]*(?:secret|token|session|auth|key|pass|cred))[a-z_-]{2,}(?:[_-]ids?|(?-i:(?<=[a-z])Ids?)))["']?\s?(?:[:=]\s?|>)["']?$"""
)
ABOUT = r"""(?:^|[_.-]|(?-i:(?<=[a-z])(?=[A-Z])))(?:ids?|hash(?:ed|es)?|digest|fingerprint|checksum|sha\d*|md5|arn
    |ur[il]s?|path|file|name|host|type|version|image|ref|endpoint|class|policy|manager)(?![a-z])"""
_ABOUT_IT = verbose(ABOUT)
_WITH_USER = verbose(
    r"(?:id|user|username|login|account|계정|아이디)[\W_]{1,4}$|--?$|(?-i:[A-Z0-9]_$)|(?:become|ssh|sudo|db|user|admin|root|smtp|mail|ftp)_$"
)


_NETWORKS = verbose(r"(?<![^\W\d_])(?:wi-?fi|wlan|router|hotspot|ssid)(?![^\W\d_])")


# The password vault, a token server: what follows is where credentials are, and may be a machine's name.
_KEEPER = verbose(
    r"""s?[ ](?:vault|stor(?:e|age)|manager|server|service|host|machine|database|db|bucket|repo(?:sitory)?|node|cluster
    |broker|provider|system)s?(?![a-z])"""
)


def is_public(before: str) -> bool:
    """Whether a text ends with the name of a public key or an id, and what links it to a value."""
    return _OF_PUBLIC.search(before) is not None


def names_keeper(text: str, end: int) -> bool:
    """Whether the word for a credential that ends here is only said of a machine or a program."""
    return _KEEPER.match(text, end) is not None


def opens_something(text: str) -> bool:
    """Whether a text names a credential, a door, a way to sign in, or a network: a name in it may be a passphrase."""
    named = any(not names_keeper(text, found.end()) for found in NAME.finditer(text))
    return named or any(pattern.search(text) is not None for pattern in (_PLACES, _NETWORKS))


class CredentialName(msgspec.Struct, frozen=True, kw_only=True):
    """A name that says credential: where it stands, and what it takes for a value to be believed."""

    start: int
    end: int  # of the whole identifier
    by_people: bool
    beside_user: bool  # the credential may follow a user's name
    plain: bool  # it cannot mean anything else, as `pass` can
    is_phrase: bool
    is_code: bool  # a number may be its value
    is_secret: bool  # a few words may be its value
    is_key: bool  # only a random value is one
    is_upper: bool
    is_tag: bool
    in_tag: bool
    least: int


def line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def lines_with_names(text: str, lowered: str) -> dict[int, int]:
    lines: dict[int, int] = {}
    for keyword in _ASCII_KEYWORDS if text.isascii() else _ASCII_KEYWORDS + _OTHER_KEYWORDS:
        at = lowered.find(keyword)
        while at >= 0:
            end = line_end(text, at)
            lines[text.rfind("\n", 0, at) + 1] = end
            at = lowered.find(keyword, end)
    return lines


def name_at(text: str, match: re.Match[str]) -> CredentialName | None:
    """The name that a credential's word belongs to; None where it is part of another word, or of another name."""
    word, end = match[match.lastgroup or 0], match.end()
    tail = _IDENTIFIER.match(text, end)[0]  # type: ignore[index]
    rest = tail[1:] if tail[:1] in ("s", "S") else tail
    inflected = match.lastgroup == "people" and _INFLECTED.fullmatch(tail) is not None
    if (
        rest[:1].isalpha()
        and word[-1].isascii()
        and rest[0].islower() == word[-1].islower()
        and not inflected
    ):
        return None  # secretary, tokenize, keyboard
    before = text[max(0, match.start() - 60) : match.start()]
    if (
        match.lastgroup == "code"
        and word[-3:] not in ("TAN", "OTP")
        and (
            _OTHER_CODE.search(before)
            or not (_YOURS.search(before) or _PLACES.search(text[max(0, match.start() - 40) : end + 40]))
        )
    ):
        return None
    if _ABOUT_IT.search(tail) or _INSIDE.search(before) or _ENCODED_BLANK.match(text, end + len(tail)):
        return None
    if match.lastgroup == "key" and _PUBLIC.search(before):
        return None
    weak = match.lastgroup == "key" or _WEAK.fullmatch(word) is not None
    by_people = match.lastgroup in ("people", "code") or BY_PEOPLE.fullmatch(word) is not None
    return CredentialName(
        start=match.start(),
        end=end + len(tail),
        by_people=by_people,
        beside_user=by_people or word.lower().startswith("cred"),
        plain=word.lower() not in _AMBIGUOUS or len(match[0]) > 5 or _WITH_USER.search(before) is not None,
        is_phrase="phrase" in word.lower(),
        is_code=match.lastgroup == "code"
        or re.search(r"(?i:pin|puk|code|番号|番號|번호|[码碼]|コード)$", word) is not None,
        is_secret=word.lower() == "secret" and not tail,
        is_key=not tail and (match.lastgroup in ("key", "keyed") or word.lower() == "api"),
        is_upper=match[0].isupper(),
        is_tag=re.search(r"<(?:\w{1,20}:)?[\w.-]{0,20}$", before) is not None,
        in_tag=re.search(r"<[\w.:-][^<>\n]*$|<$", before) is not None,
        least=RANDOM if weak or not (inflected or _SAME.fullmatch(tail)) else CHOSEN,
    )
