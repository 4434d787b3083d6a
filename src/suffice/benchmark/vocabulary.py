"""Words that the rules read by: nationalities, nouns that say what a page is about, ranks, and what a name looks like."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from suffice.text import bare_title

__all__ = [
    "COUNTRIES",
    "KINDS",
    "NATIONALITIES",
    "RANKS",
    "NameList",
    "base_title",
    "names_at",
    "place_at",
    "without_rank",
]

# Demonym -> country, as Wikipedia's first sentences use them.
NATIONALITIES: dict[str, str] = dict(
    pair.split("=")
    for pair in (
        "Afghan=Afghanistan;Albanian=Albania;Algerian=Algeria;American=United States;Angolan=Angola;Argentine=Argentina;"
        "Argentinian=Argentina;Armenian=Armenia;Australian=Australia;Austrian=Austria;Azerbaijani=Azerbaijan;"
        "Bangladeshi=Bangladesh;Belarusian=Belarus;Belgian=Belgium;Bolivian=Bolivia;Bosnian=Bosnia and Herzegovina;"
        "Brazilian=Brazil;British=United Kingdom;Bulgarian=Bulgaria;Burmese=Myanmar;Cambodian=Cambodia;Cameroonian=Cameroon;"
        "Canadian=Canada;Chilean=Chile;Chinese=China;Colombian=Colombia;Congolese=Congo;Croatian=Croatia;Cuban=Cuba;"
        "Cypriot=Cyprus;Czech=Czech Republic;Danish=Denmark;Dominican=Dominican Republic;Dutch=Netherlands;Ecuadorian=Ecuador;"
        "Egyptian=Egypt;English=England;Estonian=Estonia;Ethiopian=Ethiopia;Filipino=Philippines;Finnish=Finland;French=France;"
        "Georgian=Georgia;German=Germany;Ghanaian=Ghana;Greek=Greece;Guatemalan=Guatemala;Haitian=Haiti;Honduran=Honduras;"
        "Hungarian=Hungary;Icelandic=Iceland;Indian=India;Indonesian=Indonesia;Iranian=Iran;Iraqi=Iraq;Irish=Ireland;"
        "Israeli=Israel;Italian=Italy;Ivorian=Ivory Coast;Jamaican=Jamaica;Japanese=Japan;Jordanian=Jordan;"
        "Kazakhstani=Kazakhstan;Kenyan=Kenya;Kosovan=Kosovo;Kuwaiti=Kuwait;Latvian=Latvia;Lebanese=Lebanon;"
        "Liberian=Liberia;Libyan=Libya;Lithuanian=Lithuania;Macedonian=North Macedonia;Malaysian=Malaysia;Maltese=Malta;"
        "Mexican=Mexico;Moldovan=Moldova;Mongolian=Mongolia;Moroccan=Morocco;Namibian=Namibia;Nepalese=Nepal;"
        "Nepali=Nepal;Nicaraguan=Nicaragua;Nigerian=Nigeria;Norwegian=Norway;Pakistani=Pakistan;Palestinian=Palestine;"
        "Panamanian=Panama;Paraguayan=Paraguay;Peruvian=Peru;Polish=Poland;Portuguese=Portugal;Romanian=Romania;"
        "Russian=Russia;Rwandan=Rwanda;Salvadoran=El Salvador;Saudi=Saudi Arabia;Scottish=Scotland;Senegalese=Senegal;"
        "Serbian=Serbia;Singaporean=Singapore;Slovak=Slovakia;Slovene=Slovenia;Slovenian=Slovenia;Somali=Somalia;"
        "Soviet=Soviet Union;Spanish=Spain;Sudanese=Sudan;Swedish=Sweden;Swiss=Switzerland;Syrian=Syria;"
        "Taiwanese=Taiwan;Tanzanian=Tanzania;Thai=Thailand;Tunisian=Tunisia;Turkish=Turkey;Ugandan=Uganda;Ukrainian=Ukraine;"
        "Uruguayan=Uruguay;Uzbek=Uzbekistan;Venezuelan=Venezuela;Vietnamese=Vietnam;Welsh=Wales;Yemeni=Yemen;"
        "Yugoslav=Yugoslavia;Zambian=Zambia;Zimbabwean=Zimbabwe"
    ).split(";")
)
COUNTRIES = frozenset(NATIONALITIES.values()) | frozenset(
    "Andorra;Bahrain;Barbados;Belize;Benin;Bhutan;Botswana;Brunei;Burkina Faso;Burundi;Chad;Costa Rica;Eritrea;Fiji;Gabon;"
    "Gambia;Greenland;Guinea;Guyana;Kazakhstan;Kyrgyzstan;Laos;Lesotho;Liechtenstein;Luxembourg;Madagascar;Malawi;Mali;"
    "Mauritania;Mauritius;Monaco;Montenegro;Mozambique;New Zealand;Niger;North Korea;Oman;Papua New Guinea;Qatar;San Marino;"
    "Sierra Leone;South Africa;South Korea;South Sudan;Sri Lanka;Suriname;Tajikistan;Togo;Trinidad and Tobago;Turkmenistan;"
    "United Arab Emirates;Vanuatu;Vatican City;the United States;the United Kingdom;the Netherlands;the Philippines;USA;"
    "United States of America;the Soviet Union;the Czech Republic;Western Australia".split(";")
) - {"Western Australia", "Georgia"}

# The noun that ends the first noun phrase of a page -> what the page is about.
_NOUNS = {
    "film": "film movie documentary melodrama",
    "series": "series sitcom miniseries serial telenovela",
    "song": "song single ballad hymn",
    "album": "album ep soundtrack mixtape",
    "book": "novel book novella poem memoir trilogy autobiography",
    "play": "play opera musical operetta ballet",
    "game": "game",
    "paper": "magazine newspaper journal",
    "band": "band group duo trio quartet orchestra ensemble",
    "company": "company corporation firm manufacturer brand retailer airline label subsidiary studio bank conglomerate",
    "school": "university college school academy institute",
    "place": (
        "city town village municipality commune suburb district province region county state country capital island river lake "
        "mountain locality neighborhood neighbourhood hamlet settlement parish borough township community valley bay peninsula "
        "castle street park kingdom republic territory"
    ),
    "building": (
        "building church cathedral museum stadium theatre theater station airport bridge tower house palace hotel hospital "
        "prison library temple mosque monastery abbey mall arena"
    ),
    "team": "team club franchise",
    "person": (
        "actor actress director producer screenwriter filmmaker writer author novelist poet playwright journalist singer "
        "songwriter musician composer guitarist drummer pianist rapper conductor bassist vocalist politician lawyer judge "
        "diplomat statesman soldier officer general admiral king queen emperor empress prince princess duke duchess count "
        "countess earl baron baroness margrave landgrave elector nobleman noblewoman aristocrat bishop archbishop "
        "cardinal priest theologian saint pope footballer player cricketer swimmer boxer wrestler athlete racer driver "
        "coach manager cyclist rower gymnast skater referee painter sculptor artist architect photographer "
        "cinematographer editor animator cartoonist illustrator model dancer choreographer comedian presenter broadcaster "
        "scientist physicist chemist biologist mathematician engineer astronomer inventor philosopher historian economist "
        "physician surgeon psychologist sociologist anthropologist archaeologist botanist zoologist linguist scholar "
        "professor academic teacher educator businessman businesswoman entrepreneur executive banker merchant activist "
        "feminist philanthropist socialite ruler monarch courtier peer son daughter wife mother father husband consort "
        "brother sister recipient pilot aviator explorer librettist lyricist critic essayist translator pitcher "
        "outfielder infielder catcher goalkeeper midfielder defender striker quarterback linebacker skier golfer jockey "
        "fencer sprinter archer rabbi monk nun abbot missionary chef designer spy gangster criminal killer chieftain "
        "sultan tsar caliph regent viscount viscountess marquess chief"
    ),
}
KINDS: dict[str, str] = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns.split()}

# Rank and address before a name; the word tells man from woman where it can.
RANKS: dict[str, str] = {
    **dict.fromkeys(
        "King Emperor Prince Duke Archduke Earl Count Baron Lord Sir Tsar Sultan Margrave Landgrave Elector Marquess Marquis "
        "Viscount Mr. Father Don Shah Khan Maharaja Raja Pope Bishop Archbishop Cardinal".split(),
        "man",
    ),
    **dict.fromkeys(
        "Queen Empress Princess Duchess Archduchess Countess Baroness Lady Dame Margravine Landgravine Electress Viscountess "
        "Marchioness Infanta Mrs. Miss Sultana Rani Maharani".split(),
        "woman",
    ),
    **dict.fromkeys(
        "Dr. Dr Professor General Colonel Captain Major Admiral President Saint St. Grand Crown Hereditary".split(),
        "",
    ),
}

_CAPITAL = r"(?:[dl]['’]|al-|el-)?[^\W\d_a-zß-öø-ÿ][\w'’.-]*"
_SMALL = r"(?:of|the|de'|de|da|di|del|della|van|von|der|den|la|le|du|bin|ibn|al|zu|y|dos|das|ten|ter|af|av|ap|ben|el|e)"
_NAME = re.compile(rf'{_CAPITAL}(?: (?:{_SMALL} ){{0,3}}{_CAPITAL}| "[^"]{{2,20}}" {_CAPITAL})*')
_RANK = "|".join(sorted((word for word in RANKS if word.isalpha()), key=len, reverse=True))
# ", 3rd Baron Willoughby of Parham", ", Count of Hesbaye", ", Jr.": part of the name before it.
_RANKED = re.compile(
    rf", (?:\d+(?:st|nd|rd|th) )?(?:(?:Grand |Crown |Hereditary )?(?:{_RANK}) (?:(?:of|von|de|in) )?{_NAME.pattern}|Baronet\b)"
    rf"|, (?:Holy Roman Emperor|Dauphin of France|Jr\.?|Sr\.?)(?!\w)"
)
_NEXT, _AND = (
    re.compile(r",? (?:and|&) |, "),
    re.compile(
        r",? (?:and|&|by) (?:of )?(?:(?:his|her) (?:\w+ )?(?:wife|husband|consort),? |the former |the )?"
    ),
)


@dataclass(frozen=True, slots=True)
class NameList:
    """Names that stand in a row from some place on, and where they end."""

    names: tuple[str, ...]
    end: int


def base_title(title: str) -> str:
    """A title without what stands in parentheses at its end."""
    return bare_title(title) or title


def without_rank(name: str) -> str:
    """The name without rank and address before it; a name that is nothing else keeps them."""
    words = name.split()
    while len(words) > 1 and words[0] in RANKS and words[1] not in ("of", "von", "de"):
        words.pop(0)
    return " ".join(words)


def names_at(text: str, at: int, *, joined: Collection[str] = (), commas: bool = True) -> NameList:
    """The names that begin here: "A", "A and B", "A, B and C". None where no name does.

    `joined` are pairs of words whose "and" belongs to one name ("Greece and Denmark"); without `commas` only "and" goes on.
    """
    found: list[str] = []
    start = end = at
    while (match := _NAME.match(text, at)) is not None:
        end = match.end()
        if (rank := _RANKED.match(text, end)) is not None:
            end = rank.end()
        if (
            pair := re.match(r" and ([A-Z][\w-]+)", text[end:])
        ) and f"{text[start:end].split()[-1]} and {pair[1]}" in joined:
            end += pair.end()
        name, stopped = text[start:end], False
        # A full stop ends the sentence, unless it belongs to an initial or an abbreviation.
        if (
            name.endswith(".")
            and len(name.split()[-1]) > 2
            and name.split()[-1] not in ("Jr.", "Sr.")
        ):
            name, end, stopped = name.rstrip("."), end - 1, True
        found.append(re.sub(r"['’]s?$", "", re.sub(r' "[^"]*"', "", name)))
        if (
            stopped
            or text[end - 2 : end] in ("'s", "’s")
            or (following := (_NEXT if commas else _AND).match(text, end)) is None
        ):
            break
        start = at = following.end()
    return NameList(tuple(found), end)


_PLACE = re.compile(rf"(?:the )?{_NAME.pattern}(?:, (?:{_NAME.pattern}))*")


def place_at(text: str, at: int) -> str | None:
    """The place that begins here, with the larger ones it lies in: "Cahir, County Tipperary, Ireland"."""
    match = _PLACE.match(text, at)
    return match.group().rstrip(".") if match else None
