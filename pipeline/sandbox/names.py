"""Names for simulated account holders, and variants of forenames.

Most variants come from the package `nicknames`, a hand-made list of English forenames; this module adds
British and continental ones.
"""

from functools import cache, lru_cache

from nicknames import NickNamer

UK_FORENAMES = (
    "William", "Elizabeth", "Robert", "Margaret", "Thomas", "Katherine", "James", "Victoria",
    "Edward", "Charlotte", "Michael", "Susan", "Christopher", "Jennifer", "Daniel", "Rebecca",
    "Matthew", "Samantha", "Anthony", "Deborah", "Benjamin", "Abigail", "Nicholas", "Philippa",
    "Joseph", "Jessica", "Alexander", "Alexandra", "Andrew", "Patricia", "Samuel", "Pamela",
    "Imogen", "Rhys", "Priya", "Callum", "Niamh", "Amir", "Zara", "Owen",
)  # fmt: skip

EUROPEAN_FORENAMES = (
    "Matthias", "Annelies", "Lukas", "Chiara", "Pieter", "Giulia", "Étienne", "Solène", "Jürgen",
    "Katrin", "Alejandro", "Lucía", "Matteo", "Femke", "Stefan", "Ingrid", "Joost", "Clémence",
    "Rafael", "Marta", "Tobias", "Helena", "Anton", "Liisa",
)  # fmt: skip

UK_SURNAMES = (
    "Thornwood", "Farraday", "Ashgrove", "Pemberley", "Blackmere", "Hollinsworth", "Wainscott",
    "Larkfield", "Dunmorrow", "Eastergate", "Fenwright", "Garrowby", "Harkstone", "Inglesby",
    "Kestleton", "Longmire", "Marrowdale", "Netherby", "Oakenshaw", "Penhallow", "Quillfeather",
    "Ravensdale", "Silverthorne", "Tarnbrook", "Underhay", "Vellacourt", "Westerdale", "Yarrowby",
    "O'Dunmore", "Ashby-Fenn",
)  # fmt: skip

EUROPEAN_SURNAMES = (
    "Lindquer", "Brandholz", "van der Maasdijk", "Castelverde", "Montferrand", "Steinwalder",
    "de Rocamora", "Vallombroso", "Kerkhoven", "Grünberger", "Beaurivage", "Altamirana",
    "Sauvageot", "Rossignano", "Dijkgraver", "Wolkenstein", "Peñalver", "Korhoila", "Fontanesca",
    "Hagendorn",
)  # fmt: skip

COMPANY_WORDS = (
    "Brackenfell", "Cobaltree", "Driftmoor", "Emberline", "Foxmantle", "Gildersea", "Hazelcombe",
    "Ironmarsh", "Juniper Vale", "Kitewell", "Lanternside", "Millhaven", "Northpike", "Orchardine",
    "Pebblecourt", "Quarrymead", "Rookwater", "Saltmere", "Tidewick", "Umbercroft",
)  # fmt: skip

TRADES = (
    "Engineering", "Catering", "Logistics", "Joinery", "Textiles", "Publishing", "Scaffolding",
    "Dental Care", "Packaging", "Instruments", "Landscapes", "Bakeries",
)  # fmt: skip

UK_COMPANY_FORMS = ("Ltd", "Limited", "LLP", "plc", "& Sons Ltd", "and Partners LLP")
EUROPEAN_COMPANY_FORMS = ("GmbH", "B.V.", "S.A.S.", "S.L.", "S.r.l.", "NV", "Oy", "SA")

TITLES = frozenset({
    "mr", "mrs", "ms", "miss", "mx", "dr", "prof", "professor", "sir", "dame", "lord", "lady",
    "rev", "reverend", "herr", "frau", "mme", "mlle",
})  # fmt: skip

SURNAME_PARTICLES = frozenset({
    "van", "von", "der", "den", "de", "del", "della", "di", "da", "dos", "du", "la", "le",
    "ter", "ten", "zu", "el", "al", "bin", "ibn", "o",
})  # fmt: skip

FURTHER_VARIANTS = tuple(
    frozenset(group.split())
    for group in (
        "william will bill billy liam",
        "robert rob bob bobby robbie bert",
        "katherine catherine kathryn kate katie kathy cathy kat",
        "victoria vicky vikki tori",
        "charlotte lottie charlie lotte",
        "susan sue susie suzanne",
        "christopher chris kit topher",
        "rebecca becky becca bex",
        "anthony antony tony ant",
        "benjamin ben benny benji",
        "abigail abi abby gail",
        "nicholas nick nicky nicolas",
        "philippa pippa pip",
        "alexander alex alec sandy xander sasha",
        "alexandra alex sandra lexi sasha",
        "stephen steven steve",
        "peter pete pieter",
        "lukas luke lucas luc",
        "matthias matt matze",
        "stefan steffen stephan",
        "helena helen lena ellen",
        "giulia julia julie",
        "alejandro alex jandro",
        "rafael rafa raphael",
        "tobias tobi toby",
    )
)
"""Forenames of one person that the package `nicknames` does not link."""


@lru_cache(maxsize=4096)  # the same few names are compared again and again
def are_variants(one: str, other: str) -> bool:
    """True if two forenames, in lower case, are nicknames or variants of each other.

    >>> are_variants("bob", "robert"), are_variants("bob", "rob"), are_variants("bob", "william")
    (True, True, False)
    """
    if any(one in group and other in group for group in FURTHER_VARIANTS):
        return True
    full_forms = ({forename, *_listed().canonicals_of(forename)} for forename in (one, other))
    return not set.isdisjoint(*full_forms)


class _Listed(NickNamer):
    """The package's list, loaded when first used; `L.R.` is read as `lr`."""

    def _normalize_name(self, name: str) -> str:
        return "".join(filter(str.isalnum, name.casefold()))


_listed = cache(_Listed)
