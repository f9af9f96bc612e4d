"""What people write about: named topics, each with an emoji and its words, the most telling first."""

from __future__ import annotations

from typing import NamedTuple

N_WORDS = 16


class Topic(NamedTuple):
    """A subject and its ``N_WORDS`` words in falling order of weight."""

    name: str
    emoji: str
    words: tuple[str, ...]


def _topic(name: str, emoji: str, words: str) -> Topic:
    return Topic(name, emoji, tuple(words.split()))


TOPICS = (
    _topic(
        "fire",
        "🔥",
        "fire smoke flames alarm firefighters burning blaze wildfire "
        "evacuation ash embers warehouse hydrant rescue sparks arson",
    ),
    _topic(
        "flood",
        "🌊",
        "flood water river rain levee sandbags overflow basement "
        "drainage dam submerged evacuate boats torrent mud upstream",
    ),
    _topic(
        "storm",
        "⛈️",
        "storm wind thunder lightning hail warning gusts hurricane "
        "typhoon tornado shelter blackout branches radar surge cyclone",
    ),
    _topic(
        "earthquake",
        "🏚️",
        "earthquake magnitude tremor shaking aftershock epicenter seismic rubble "
        "collapse damage tsunami fault cracks survivors richter trapped",
    ),
    _topic(
        "heat",
        "☀️",
        "heat temperature drought sun hydration shade heatwave degrees "
        "humidity sunburn fans thirsty scorching reservoir dry wilting",
    ),
    _topic(
        "snow",
        "❄️",
        "snow ice blizzard freezing frost skiing slippery plow "
        "avalanche sledge snowfall mittens icicles slopes thaw shovel",
    ),
    _topic(
        "traffic",
        "🚗",
        "traffic jam road accident highway closed detour congestion "
        "lane bridge queue roadworks collision tunnel commute standstill",
    ),
    _topic(
        "trains",
        "🚆",
        "train delay platform station metro subway cancelled signal "
        "tracks strike railway passengers carriage timetable tram locomotive",
    ),
    _topic(
        "flights",
        "✈️",
        "flight airport gate boarding luggage delayed runway passport "
        "terminal airline pilot layover turbulence customs landing takeoff",
    ),
    _topic(
        "cycling",
        "🚲",
        "bike cycling cyclist helmet pedal peloton trail puncture "
        "saddle chain sprint climb gears tandem handlebar velodrome",
    ),
    _topic(
        "concert",
        "🎵",
        "concert band stage tickets guitar encore singer drummer "
        "festival crowd setlist bass acoustic album support backstage",
    ),
    _topic(
        "cinema",
        "🎬",
        "movie film cinema premiere actor director trailer popcorn "
        "sequel scene screening script thriller animation subtitles oscar",
    ),
    _topic(
        "theatre",
        "🎭",
        "theatre play ballet opera rehearsal costume musical audience "
        "applause curtain soprano tragedy orchestra comedy balcony libretto",
    ),
    _topic(
        "football",
        "⚽",
        "football goal match league penalty striker keeper derby "
        "referee offside stadium cup midfielder kickoff transfer header",
    ),
    _topic(
        "cricket",
        "🏏",
        "cricket wicket innings batsman bowler over runs spinner "
        "stumps century pitch pavilion boundary umpire yorker maiden",
    ),
    _topic(
        "basketball",
        "🏀",
        "basketball dunk playoffs rebound court buzzer rookie guard "
        "finals coach triple assist dribble hoop turnover layup",
    ),
    _topic(
        "running",
        "🏃",
        "marathon running race runner finish medal pace jogging "
        "kilometre shoes blister hydrated stretch relay start personal",
    ),
    _topic(
        "election",
        "🗳️",
        "election vote ballot candidate polls campaign parliament coalition "
        "debate president mayor turnout referendum majority recount manifesto",
    ),
    _topic(
        "protest",
        "📣",
        "protest march demonstration police rally banner strike rights "
        "blockade crowd slogan union barricade megaphone petition vigil",
    ),
    _topic(
        "economy",
        "📈",
        "economy inflation prices market stocks bank wages unemployment "
        "rates recession budget currency exports tax investors shares",
    ),
    _topic(
        "startups",
        "🚀",
        "startup founder funding investor pitch app launch hackathon "
        "accelerator prototype equity seed unicorn hiring roadmap pivot",
    ),
    _topic(
        "software",
        "💻",
        "software code bug server release python deploy database "
        "outage cloud kernel compiler laptop patch developer refactor",
    ),
    _topic(
        "games",
        "🎮",
        "game gaming console level multiplayer quest controller boss "
        "speedrun esports stream patch loot arcade pixel respawn",
    ),
    _topic(
        "food",
        "🍜",
        "food restaurant noodles spicy dinner recipe chef street "
        "lunch soup curry dumplings bakery tacos menu barbecue",
    ),
    _topic(
        "coffee",
        "☕",
        "coffee espresso cafe latte barista roast beans cappuccino "
        "breakfast croissant mug grinder filter cortado brew decaf",
    ),
    _topic(
        "fashion",
        "👗",
        "fashion dress runway designer style sneakers vintage collection "
        "model jacket fabric boutique denim handbag tailor couture",
    ),
    _topic(
        "museum",
        "🖼️",
        "museum exhibition art gallery painting sculpture artist portrait "
        "curator opening canvas fresco installation ceramics sketch mural",
    ),
    _topic(
        "books",
        "📚",
        "book novel library author reading poetry chapter bookshop "
        "writer translation publisher paperback memoir fiction signing anthology",
    ),
    _topic(
        "school",
        "🎓",
        "school exam teacher university students homework lecture graduation "
        "campus semester scholarship thesis kindergarten classroom professor syllabus",
    ),
    _topic(
        "health",
        "🏥",
        "hospital doctor vaccine flu clinic ambulance nurse patients "
        "fever surgery symptoms pharmacy therapy allergy outbreak diagnosis",
    ),
    _topic(
        "pets",
        "🐶",
        "dog cat puppy kitten vet lost adopt leash paws shelter breed collar hamster parrot whiskers terrier",
    ),
    _topic(
        "wildlife",
        "🦉",
        "birds wildlife owl forest elephant whale migration nest "
        "deer tiger habitat eagle turtle binoculars heron otter",
    ),
    _topic(
        "beach",
        "🏖️",
        "beach surf waves sand swimming tide lifeguard sunset "
        "coast dolphins snorkel jellyfish lagoon seaside dunes pier",
    ),
    _topic(
        "hiking",
        "⛰️",
        "hiking mountain trail summit camping tent valley backpack "
        "waterfall glacier ridge campfire lake boots lookout canyon",
    ),
    _topic(
        "space",
        "🛰️",
        "space rocket satellite moon astronaut orbit telescope eclipse "
        "mars meteor comet aurora galaxy countdown asteroid nebula",
    ),
    _topic(
        "power",
        "⚡",
        "power outage electricity grid blackout solar turbine generator "
        "cable battery voltage transformer nuclear substation renewable megawatt",
    ),
    _topic(
        "crime",
        "🚨",
        "police robbery stolen arrest burglary suspect theft witness "
        "detective court fraud thief sirens patrol trial evidence",
    ),
    _topic(
        "housing",
        "🏠",
        "rent apartment housing landlord mortgage flat tenant neighbourhood "
        "renovation deposit garden plumbing kitchen construction lease balcony",
    ),
    _topic(
        "market",
        "🛍️",
        "market sale discount shop vegetables stall bargain farmers "
        "cheese fruit flowers antiques vendor honey crafts mangoes",
    ),
    _topic(
        "wedding",
        "💍",
        "wedding bride groom ceremony bouquet engagement anniversary dance "
        "cake toast honeymoon vows bridesmaid confetti guests proposal",
    ),
)
