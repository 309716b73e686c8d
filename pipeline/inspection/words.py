"""Words that logs use: names of columns by role, names of actions, and spellings of "missing"."""

import re
from collections.abc import Sequence
from functools import lru_cache

# The most telling first; compared without case and punctuation.
ROLE_WORDS = {
    "user_id": (
        *("user_id", "userid", "user", "uid", "visitor_id", "visitor", "customer_id", "customer", "customer_no"),
        *("client_id", "member_id", "member", "account_id", "account", "person_id", "subscriber_id", "reviewer_id"),
        *("reviewer", "viewer_id", "buyer_id", "shopper_id", "player_id", "learner_id", "student_id", "user_pseudo_id"),
        *(
            "user_name",
            "username",
            "login",
            "cookie_id",
            "cookie",
            "anonymous_id",
            "distinct_id",
            "device_id",
            "device",
        ),
        *("full_visitor_id", "client", "msno", "session_id", "session", "user_session", "author", "uuid", "host", "ip"),
        *("client_ip", "remote_addr", "c_ip", "ip_address"),
    ),
    "item_id": (
        *("item_id", "item", "iid", "product_id", "product", "sku", "sku_id", "stock_code", "article_id", "article"),
        *("aid", "asin", "parent_asin", "movie_id", "movie", "book_id", "book", "isbn", "track_id", "track", "song_id"),
        *(
            "song",
            "video_id",
            "video",
            "content_id",
            "news_id",
            "news",
            "business_id",
            "goods_id",
            "listing_id",
            "poi_id",
        ),
        *("venue_id", "location_id", "place_id", "adgroup_id", "ad_id", "creative_id", "recipe_id", "anime_id"),
        *("app_id", "game_id", "game", "hotel_id", "job_id", "course_id", "doc_id", "photo_id", "artist_id", "artist"),
        *("beer_id", "target_id", "object_id", "material", "good", "url", "page", "uri", "path", "request_path"),
    ),
    "timestamp": (
        *("timestamp", "event_timestamp", "event_time", "time", "ts", "datetime", "date_time", "time_stamp", "time_ms"),
        *("unix_review_time", "unix_time", "created_at", "created", "occurred_at", "invoice_date", "order_date"),
        *("visit_time", "start_time", "action_time", "click_time", "server_time", "log_time", "rated_at", "at"),
        *("utc_time", "local_time", "time_local", "review_time", "date", "day", "t", "t_dat", "hour", "dt"),
    ),
    "action": (
        *("action", "event_type", "event", "event_name", "behavior", "behaviour", "behavior_type", "behaviour_type"),
        *("action_type", "type", "activity", "activity_type", "interaction", "interaction_type", "operation", "verb"),
        *("feedback", "feedback_type", "op", "btag", "method", "action_name", "log_type"),
    ),
}
ACTION_NAMES = frozenset(
    [
        "view",
        "views",
        "click",
        "clicks",
        "pv",
        "cart",
        "carts",
        "addtocart",
        "add_to_cart",
        "fav",
        "favorite",
        "favourite",
        "buy",
        "purchase",
        "purchases",
        "order",
        "orders",
        "transaction",
        "like",
        "dislike",
        "share",
        "comment",
        "impression",
        "impressions",
        "play",
        "skip",
        "search",
        "add",
        "remove",
        "checkout",
        "collect",
        "follow",
        "remove_from_cart",
        "wishlist",
        "rating",
        "visit",
        "read",
        "pageview",
        "page_view",
        "listen",
        "save",
        "download",
        "install",
        "get",
        "post",
    ]
)
# A column with few values that is named so says where, who or how much, and not what was done.
NO_ACTIONS = frozenset(
    [
        *("country", "city", "region", "state", "land", "lang", "language", "locale", "currency", "gender", "age"),
        *("rating", "stars", "score", "price", "brand", "category", "device", "os", "browser", "platform", "status"),
    ]
)
# A cell that is one of these says that there is no value.
MISSING = (
    *("NA", "N/A", "n/a", "NULL", "null", "Null", "None", "none", "NaN", "nan", r"\N", "(null)", "<null>", "nil"),
    *("undefined", "#N/A", "-", "?", "[NULL]", "(not set)"),
)
CODES_MISSING = ("-1",)
# Ids that some logs give to everybody whom they do not know.
NOBODY_WORDS = frozenset(
    ["unknown", "anonymous", "anon", "guest", "null", "none", "nan", "n/a", "na", "undefined", "not set", "-"]
)
NOBODY_CODES = frozenset(["0", "-1", "0.0", "-1.0"])
MOST_LISTED = 6
WRAPPER = re.compile(r"\.\$[A-Za-z]+$")  # MongoDB exports {"$oid": ...}, {"$date": ...}
HEADER_TYPES = re.compile(r"[^:]+:(token|token_seq|float|float_seq)")


def plain(name: str) -> str:
    """A name without case and punctuation.

    >>> plain("User-ID"), plain("InvoiceDate")
    ('userid', 'invoicedate')
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache
def _ranks(role: str) -> dict[str, int]:
    words = [plain(word) for word in ROLE_WORDS[role]]
    return {word: 100 - words.index(word) for word in words}


def name_score(name: str, role: str) -> int:
    """How well a name fits a role: 100 for the most telling, 0 for none.

    Of a path such as `event.user.id` the last two parts count as well; a word within the name counts less. A last part
    such as `$oid` is no name.
    """
    name = WRAPPER.sub("", name)
    ranks, parts = _ranks(role), name.split(".")
    whole = [name, *(".".join(parts[-n:]) for n in (2, 1) if len(parts) > n)]
    exact = [ranks[plain(text)] - 2 * at for at, text in enumerate(whole) if plain(text) in ranks]
    if exact:
        return max(exact)
    words = [word for word in re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", parts[-1]).lower()) if word]
    inner = [ranks[word] // 3 for word in words if len(word) > 2 and word in ranks]
    return max(inner, default=0)


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> listed(["a", "b", "c"]), listed([])
    ('a, b and c', 'none')
    """
    if len(names) > MOST_LISTED:
        names = [*names[:MOST_LISTED], f"{len(names) - MOST_LISTED} others"]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else "none"
