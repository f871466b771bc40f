"""Words from which the simulated account holders are named, and how people shorten their names."""

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

NICKNAMES = tuple(
    frozenset(group.split())
    for group in (
        "william will bill billy liam",
        "elizabeth liz lizzie beth betty eliza lisa",
        "robert rob bob bobby robbie bert",
        "margaret maggie meg peggy marge",
        "thomas tom tommy",
        "katherine catherine kathryn kate katie kathy cathy kat",
        "james jim jimmy jamie",
        "victoria vicky vikki tori",
        "edward ed eddie ted teddy ned",
        "charlotte lottie charlie lotte",
        "michael mike mick mickey",
        "susan sue susie suzanne",
        "christopher chris kit topher",
        "jennifer jen jenny",
        "daniel dan danny",
        "rebecca becky becca bex",
        "matthew matt matty",
        "samantha sam sammy",
        "anthony antony tony ant",
        "deborah debbie deb debra",
        "benjamin ben benny benji",
        "abigail abi abby gail",
        "nicholas nick nicky nicolas",
        "philippa pippa pip",
        "joseph joe joey",
        "jessica jess jessie",
        "alexander alex alec sandy xander sasha",
        "alexandra alex sandra lexi sasha",
        "andrew andy drew",
        "patricia pat patsy trish tricia",
        "samuel sam sammy",
        "pamela pam",
        "richard rick dick rich ricky",
        "john jack johnny jon",
        "jonathan jon jonny",
        "stephen steven steve",
        "david dave davey",
        "peter pete pieter",
        "francis frank frankie",
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
"""Names that may be one person's: the common nicknames and variants of a forename."""
