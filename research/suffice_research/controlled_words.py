"""The words of the controlled collection: outlets, trades, events, and the sentences about them.

Every name is invented. `controlled` draws from these tables.
"""

from __future__ import annotations

from typing import NamedTuple


class Aspect(NamedTuple):
    """What can go well or badly: the facts are `noun good` and `noun bad`, or reworded."""

    noun: str
    good: str
    bad: str
    veiled_good: str
    veiled_bad: str
    detail: str


class Sector(NamedTuple):
    """One trade: its label, a newsmaker in it, what it deals in, and the same reworded."""

    label: str
    kind: str
    products: tuple[str, ...]
    veiled: str


class Category(NamedTuple):
    """The newsmakers of a category, who leads and who watches them, and what happens to them."""

    suffixes: tuple[str, ...]
    role: str
    bodies: tuple[str, ...]
    who: str
    aspects: tuple[Aspect, ...]
    colour: tuple[str, ...]


# Eight general outlets write about everything, three more about one category each: 23 in all. Some
# have punctuation that people omit.
_GENERAL = (
    "The Harbor Times",
    "St. Alban's Post",
    "The Northern Herald",
    "Daily Meridian",
    "The Weekly Ledger",
    "Public Wire",
    "The Evening Courier",
    "Westgate Tribune",
)
_SPECIAL = {
    "technology": ("TechBeacon", "Circuit & Code", "The Byte Report"),
    "business": ("Globe | Markets", "Coin & Counter", "Quayside Review"),
    "sports": ("Touchline Daily", "CourtSide - Live", "The Pitch | Scores"),
    "entertainment": ("Stage & Screen", "Encore Weekly", "The Green Room"),
    "health": ("Newsline 24 - Health", "Ward Round", "The Clinic Gazette"),
}
SOURCES: dict[str, tuple[str, ...]] = {
    category: _GENERAL + special for category, special in _SPECIAL.items()
}

# fmt: off
_COMPANY = (
    Aspect("quarterly sales", "rose", "fell",
           "took in more at the till than a year earlier", "took in less at the till than a year earlier",
           "The revenue line of the quarter had been the main worry of the analysts who follow the shares."),
    Aspect("hiring plan", "was widened", "was frozen",
           "opened its doors to many newcomers", "stopped taking people on",
           "Recruiters had already published vacancies for engineers, drivers and clerks."),
    Aspect("credit rating", "was raised", "was cut",
           "came to be seen as a safer debtor", "came to be seen as a shakier debtor",
           "Bondholders read the agency's grade before they name the interest they want."),
    Aspect("data safeguards", "were praised", "were faulted",
           "was commended for how it guards private files", "was scolded for how it guards private files",
           "Auditors had gone through passwords, access logs and an old leak."),
    Aspect("union talks", "ended in a deal", "broke down",
           "made peace with the people on its payroll", "fell out with the people on its payroll",
           "Shop stewards had prepared a strike ballot over night shifts and overtime."),
    Aspect("overseas launch", "was brought forward", "was put off",
           "hurried into foreign lands", "shelved its journey into foreign lands",
           "Customs papers, local partners and translated manuals decide such a date."),
    Aspect("patent case", "was won", "was lost",
           "came away from the judges with its head high", "was beaten before the judges",
           "The jury had listened for weeks to inventors and their lawyers."),
    Aspect("carbon target", "was met early", "was missed",
           "turned out cleaner than it had promised", "turned out dirtier than it had promised",
           "Emissions are counted from furnaces, trucks and flights alike."),
    Aspect("dividend", "was lifted", "was scrapped",
           "handed its owners a larger slice", "left its owners empty-handed",
           "Shareholders vote on the payout at the annual meeting."),
    Aspect("complaints record", "improved", "worsened",
           "heard fewer grumbles from those it serves", "heard more grumbles from those it serves",
           "The ombudsman sorts the letters into refunds, delays and faulty goods."),
)
_TEAM = (
    Aspect("title odds", "shortened", "lengthened",
           "became a likelier champion in the eyes of gamblers", "became an unlikelier champion in the eyes of gamblers",
           "Bookmakers moved their prices again after the weekend."),
    Aspect("injury list", "grew shorter", "grew longer",
           "got several of its hurt people back", "lost several people to knocks and strains",
           "Physiotherapists gave a date for each knee, ankle and shoulder."),
    Aspect("ticket sales", "climbed", "slumped",
           "played to fuller stands", "played to emptier stands",
           "Season passes and turnstile counts are published every month."),
    Aspect("youth academy", "was praised", "was criticised",
           "was held up as a good school for the young", "was held up as a poor school for the young",
           "Scouts had watched the under-nineteens through a wet autumn."),
    Aspect("coaching contract", "was extended", "was torn up",
           "chose to keep the person in charge", "parted from the person in charge",
           "The clauses on bonuses and notice had been argued over since summer."),
    Aspect("stadium plan", "was approved", "was rejected",
           "was allowed to build itself a new home", "was forbidden to build itself a new home",
           "Neighbours had objected to the floodlights, the parking and the noise."),
    Aspect("transfer budget", "was raised", "was slashed",
           "was given more to spend on newcomers", "was given less to spend on newcomers",
           "Agents had offered a striker, a keeper and two loans before the window."),
    Aspect("away form", "improved", "collapsed",
           "began to do well far from home", "began to do badly far from home",
           "Long bus rides and strange pitches had been blamed before."),
    Aspect("wage dispute", "was settled", "dragged on",
           "made peace over pay", "stayed at odds over pay",
           "The captain had spoken for the squad at the bargaining table."),
    Aspect("doping inquiry", "was dropped", "ended in a ban",
           "was cleared of cheating", "was punished for cheating",
           "Laboratory samples had been opened twice in front of witnesses."),
)
_STUDIO = (
    Aspect("opening weekend", "beat forecasts", "missed forecasts",
           "drew bigger first crowds than foreseen", "drew smaller first crowds than foreseen",
           "Box office counters had expected a quiet Friday and a busy Saturday."),
    Aspect("press reviews", "were glowing", "were harsh",
           "was admired by those who judge for a living", "was mocked by those who judge for a living",
           "Critics had seen a rough cut under embargo."),
    Aspect("subscriber count", "grew", "shrank",
           "won over more paying homes", "lost paying homes",
           "Household accounts, free trials and cancellations are counted apart."),
    Aspect("writers' talks", "reached a deal", "collapsed",
           "made peace with those who invent its stories", "fell out with those who invent its stories",
           "Residuals and working hours in the script room had been the sticking points."),
    Aspect("award nominations", "doubled", "dried up",
           "was up for twice as many prizes", "was passed over for prizes",
           "The jury reads its shortlist out on live television."),
    Aspect("production schedule", "was brought forward", "slipped",
           "will be done sooner than planned", "will be done later than planned",
           "Sets, costumes and a rented sound stage wait for the first day of shooting."),
    Aspect("licensing deal", "was renewed", "was cancelled",
           "may go on using what others own", "may no longer use what others own",
           "Toy makers and broadcasters pay for the characters by the year."),
    Aspect("soundtrack", "topped the charts", "dropped off the charts",
           "had the tunes everyone hummed", "had tunes that nobody hummed any more",
           "Radio play and vinyl pressings both count for the ranking."),
    Aspect("touring show", "sold out", "was cut short",
           "filled every hall on the road", "came home early from the road",
           "Trucks carry the lighting rig from one arena to the next."),
    Aspect("copyright claim", "was dismissed", "was upheld",
           "was found to have copied nobody", "was found to have copied somebody",
           "Two experts had compared the melodies and the manuscripts."),
)
_CARE = (
    Aspect("trial results", "met the goal", "missed the goal",
           "showed that its remedy works", "could not show that its remedy works",
           "Volunteers had taken either the dose or a placebo for twelve weeks."),
    Aspect("waiting times", "came down", "went up",
           "kept the sick from queueing so long", "let the sick queue longer",
           "Referrals are timed from the first letter to the first appointment."),
    Aspect("safety inspection", "was passed", "was failed",
           "satisfied the people who look under the beds", "alarmed the people who look under the beds",
           "Hygiene, alarms and drug cupboards stand on the checklist."),
    Aspect("staffing levels", "recovered", "sank",
           "had enough hands again", "ran short of hands",
           "Rosters for nurses and night porters are filled six weeks ahead."),
    Aspect("patient survey", "showed more trust", "showed less trust",
           "was better liked by those it looks after", "was less liked by those it looks after",
           "Questionnaires had gone out by post with a stamped envelope."),
    Aspect("research grant", "was awarded", "was withdrawn",
           "was given money for finding things out", "lost its money for finding things out",
           "Reviewers score each proposal for method and merit."),
    Aspect("price agreement", "was signed", "fell through",
           "settled what it may charge", "could not settle what it may charge",
           "Insurers and ministries bargain over rebates behind closed doors."),
    Aspect("device recall", "was lifted", "was widened",
           "may use once more what had been called back", "had still more of its things called back",
           "Serial numbers and batches are listed on a public notice."),
    Aspect("vaccination drive", "was expanded", "was halted",
           "brought the needle to more arms", "put the needle away",
           "Fridges, vans and school halls are booked by the county."),
    Aspect("rural programme", "was extended", "was closed",
           "kept going where few people live", "gave up where few people live",
           "Travelling nurses had served the valleys on Tuesdays."),
)

_COMPANY_COLOUR = (
    "Its competitors watch such news closely, because margins in {label} are thin.",
    "Suppliers of {product} said they had heard nothing before the announcement.",
    "People who know the {kind} say the board had argued about it since the spring.",
    "Investors took the news calmly, and the price moved little by the close.",
)

CATEGORIES: dict[str, Category] = {
    "technology": Category(
        ("Systems", "Labs", "Devices", "Networks", "Dynamics"),
        "chief executive", ("Markets Authority", "Standards Board"), "company", _COMPANY, _COMPANY_COLOUR,
    ),
    "business": Category(
        ("Group", "Holdings", "Partners", "Trading", "Brothers"),
        "chief executive", ("Trade Commission", "Chamber of Commerce"), "company", _COMPANY, _COMPANY_COLOUR,
    ),
    "sports": Category(
        ("Rovers", "United", "Hawks", "Comets", "Athletic"),
        "head coach", ("Premier League", "Athletes Union"), "side", _TEAM,
        (
            "Supporters of the {kind} had hung banners over the north stand.",
            "Opponents in {label} have learned not to read too much into one week.",
            "The talk in the dressing room, as so often, was of {product}.",
            "A former captain said on the radio that the season is long.",
        ),
    ),
    "entertainment": Category(
        ("Pictures", "Studios", "Records", "Playhouse", "Media"),
        "creative director", ("Film Guild", "Arts Council"), "house", _STUDIO,
        (
            "Fans of the {kind} traded guesses about it through the night.",
            "In {label}, a good rumour travels faster than a good review.",
            "Most of the talk at the after-party was about {product}.",
            "An agent who asked not to be named called the mood cautious.",
        ),
    ),
    "health": Category(
        ("Clinics", "Therapeutics", "Care", "Biologics", "Medical"),
        "medical director", ("Health Council", "Medicines Agency"), "provider", _CARE,
        (
            "Doctors who work with the {kind} asked for patience.",
            "Families had hoped for clearer words about {product}.",
            "In {label}, every figure is read twice before anyone speaks.",
            "A patients' group said it would wait for the full report.",
        ),
    ),
}

SECTORS: dict[str, tuple[Sector, ...]] = {
    "technology": (
        Sector("chip design", "chip designer", ("edge processors", "memory controllers", "sensor boards"),
               "whose tiny parts do the thinking inside other people's machines"),
        Sector("cloud storage", "storage provider", ("backup vaults", "object archives", "sync clients"),
               "which keeps other people's papers on distant shelves"),
        Sector("home robotics", "robot maker", ("vacuum robots", "lawn robots", "kitchen arms"),
               "which builds helpers that do the chores by themselves"),
        Sector("mobile payments", "payments app", ("tap cards", "checkout terminals", "pocket wallets"),
               "which lets people settle up by waving a handset"),
        Sector("satellite internet", "satellite operator", ("ground dishes", "relay satellites", "ship antennas"),
               "which beams the web down to lonely places"),
        Sector("speech software", "voice software house", ("dictation engines", "call transcripts", "caption services"),
               "whose programs listen and write down what is said"),
    ),
    "business": (
        Sector("grocery retail", "supermarket chain", ("own-label goods", "delivery slots", "loyalty cards"),
               "which sells people their everyday food"),
        Sector("container shipping", "shipping line", ("box carriers", "port berths", "feeder routes"),
               "which moves goods across the water"),
        Sector("budget travel", "low-cost airline", ("seat sales", "airport bases", "baggage fees"),
               "which carries holidaymakers who count their pennies"),
        Sector("commercial lending", "regional lender", ("bridge loans", "savings accounts", "mortgage desks"),
               "which looks after other people's money"),
        Sector("packaged coffee", "coffee roaster", ("espresso capsules", "ground blends", "cafe franchises"),
               "which lives off what people drink at breakfast"),
        Sector("wind power", "wind farm developer", ("offshore turbines", "grid contracts", "repair vessels"),
               "which turns weather into current"),
    ),
    "sports": (
        Sector("league football", "football club", ("set pieces", "the back four", "late goals"),
               "whose people chase a ball with their feet"),
        Sector("basketball", "basketball franchise", ("free throws", "fast breaks", "the bench"),
               "whose tall people throw at a ring"),
        Sector("road cycling", "cycling team", ("time trials", "mountain stages", "lead-out trains"),
               "which spends its summers in the saddle"),
        Sector("ice hockey", "hockey club", ("power plays", "face-offs", "the penalty box"),
               "whose people skate for a living"),
        Sector("motor racing", "racing team", ("pit stops", "qualifying laps", "tyre choices"),
               "which goes round in circles very fast"),
        Sector("club rugby", "rugby club", ("scrums", "line-outs", "penalty kicks"),
               "whose people wrestle in the mud for an egg"),
    ),
    "entertainment": (
        Sector("feature film", "film studio", ("sequels", "costume dramas", "night shoots"),
               "which fills dark rooms with moving images"),
        Sector("streaming", "streaming service", ("box sets", "true-crime series", "live specials"),
               "which sends evenings full of stories into living rooms"),
        Sector("recorded music", "record label", ("debut albums", "reissues", "studio sessions"),
               "which lives off other people's voices"),
        Sector("musical theatre", "theatre company", ("matinees", "revivals", "understudies"),
               "whose people sing to strangers behind footlights"),
        Sector("video games", "game publisher", ("open worlds", "season passes", "beta tests"),
               "which gives grown-ups something to play with"),
        Sector("animation", "animation house", ("puppet shorts", "drawn features", "voice casts"),
               "which makes drawings walk and talk"),
    ),
    "health": (
        Sector("hospital care", "hospital group", ("operating theatres", "maternity wards", "emergency rooms"),
               "where people are cut open and sewn up again"),
        Sector("drug development", "drug developer", ("heart tablets", "asthma inhalers", "migraine injections"),
               "which looks for new cures"),
        Sector("medical devices", "device maker", ("insulin pumps", "hip joints", "heart monitors"),
               "whose inventions are worn under the skin"),
        Sector("elder care", "nursing home operator", ("memory wards", "respite rooms", "home visits"),
               "which looks after the old"),
        Sector("dentistry", "dental chain", ("root canals", "clear braces", "school checks"),
               "which people visit with a sore jaw"),
        Sector("eye care", "eye clinic network", ("cataract surgery", "laser lists", "lens fittings"),
               "which helps people see"),
    ),
}
# fmt: on

FIRST_NAMES = (
    "Mara Ilan Petra Oskar Linnea Tobias Greta Anders Noor Kasper Yara Emil Signe Rafael Ines Jonas Tilda Marek Selma Victor "
    "Alma Hugo Nadia Edvin Leonie Samir Astrid Pavel Freya Milo Ronja Dario Edith Felix Malin Bruno"
).split()

# Each starts with a consonant and only the last kind ends with one, so a stem splits into syllables
# in only one way: different syllables are different names.
SYLLABLES = (
    "Ba Bre Ca Da Fe Ga Gri Ha Jo Ka Kle Lo Me Mi No Pe Pra Ro Sa Sto Ta Tre Ve Wi".split(),
    "ba de fi ka la le li lo ma me mi na ni ra ri ro sa ta vi zo".split(),
    "bar den dor fell gard kin las lin mar mond nex nor ran ris ron sen som tal ten tis van ver vik wick".split(),
)

# ---------------------------------------------------------------------------------------- sentences

TITLES = (
    "{name}: {fact}",
    "{names} {fact} as {label} looks on",
    "Why {shorts} {fact} this {season}",
    "{names} {fact}, and {product} are part of the story",
    "What it means that {shorts} {fact}",
)
LEADS = (
    "{names} {fact} in {place}, the {kind} said on {weekday}.",
    "On {weekday} it became official in {place}: {names} {fact}.",
    "{name} confirmed in {place} on {weekday} that its {fact}.",
    "After weeks of guessing in {place}, {name} gave an answer: its {fact}.",
)
SCALES = (
    "It was the {ordinal} such turn in {count} months, by the {kind}'s own reckoning.",
    "Some {count} people inside the {kind} had worked on the matter for most of the {season}.",
    "A note of {count} pages set out how it had come about.",
    "Only {count} weeks earlier, few in {place} would have bet on it.",
)
TOPICS = (
    "Talk about the {noun} had gone on for most of the {season}.",
    "How the {noun} will look next year is anybody's guess.",
    "Few subjects have occupied the {who} as much as the {noun}.",
    "Asked about the {noun}, two former colleagues gave the same answer.",
)
QUOTES = (
    (
        "We worked hard for this and it shows",
        "This is a good day for everybody in the building",
        "I always believed that we would get here",
        "It proves that patience pays",
    ),
    (
        "We are not where we wanted to be",
        "This is a hard day for everybody in the building",
        "I will not pretend that it does not hurt",
        "We have to look at ourselves first",
    ),
)
UNSIGNED = (
    '"{quote}," said {person}, {role} of {short}.',
    '"{quote}," {person}, the {role}, said in a short statement.',
)
SIGNED = (
    '"{quote}," {person}, {role} of {short}, told {source}.',
    '"{quote}," {person}, the {role}, said in an interview with {source}.',
)
PRODUCTS = (
    "The {who} is best known for {product}.",
    "Much of its name rests on {product}, and that has not changed.",
    "{short} has lately put its weight behind {product}.",
)
BODY_SENTENCES = (
    "The {body} said that it had taken note and would not comment further.",
    "A spokeswoman for the {body} asked for the papers.",
    "The {body} meets again next month.",
)
RIVALS = (
    "{rival}, which is also at home in {label}, declined to comment.",
    "The comparison with {rival} is drawn often in {label}.",
)
RECAPS = (
    "In {month}, {outlet} had written about the {past} of {name}.",
    "{outlet} had looked into its {past} in {month}.",
    "Readers of {outlet} will remember the {month} piece on the {past}.",
    "The {past} had been the subject of a report by {outlet} in {month}.",
)
GENERAL_SENTENCES = (
    "Nobody outside the meeting would say how long the discussion had taken.",
    "The announcement came late in the day and without the usual slides.",
    "It remains to be seen whether the change will last into the new year.",
    "Neighbours in {place} spoke of little else at the market.",
    "Observers warned against drawing large conclusions from a single week.",
    "A fuller account is expected before the end of the month.",
    "The mayor of {place} welcomed the clarity, if not the timing.",
    "Those who had predicted the opposite were quick to change the subject.",
    "The details fill several binders and will keep many people busy.",
    "In private, people close to the matter sound less sure than in public.",
    "There was no applause, but there was no shouting either.",
    "The next public meeting will be held in {place} after the holidays.",
    "Whoever has followed {short} for some years has seen both kinds of day.",
    "Rain kept the crowd small, and the questions were few.",
    "For now, everyone involved seems content to wait.",
    "A person who was in the room described the mood as sober.",
)
NULL_QUESTIONS = (
    "Considering the information from an article by {first} and another by {second} about {name}, "
    "what reason did both give for the {noun}?",
    "Which adviser to {name}, quoted by {first} on the {noun}, was also interviewed by {second} on {date}?",
    "According to {first} and to what {second} wrote on {date}, how much did {name} spend on its {noun}?",
    "What did {first} call the biggest surprise in the {noun} of {name}, which {second} had ruled out on {date}?",
)
