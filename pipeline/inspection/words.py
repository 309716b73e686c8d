"""Words that logs use: names of columns by role, names of actions, and spellings of "missing"."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# The most telling first; compared without case and punctuation.
ROLE_WORDS = {
    "user_id": _words("""
        user_id userid user uid visitor_id visitor customer_id customer customer_no client_id member_id member account_id
        account actor_id actor person_id subscriber_id reviewer_id reviewer viewer_id buyer_id shopper_id player_id
        learner_id student_id user_pseudo_id user_name username login cookie_id cookie anonymous_id distinct_id device_id
        device
        full_visitor_id client msno household_id household cust_id cust card_id anon_id profile_name session_id session
        user_session author uuid host ip client_ip remote_addr c_ip ip_address email e_mail
        benutzer nutzer kunde kunden_id kundennummer kundennr usuario usuario_id cliente cliente_id utilisateur utente
        пользователь клиент покупатель 用户 用户id 用户编号 사용자 会員番号 会员 客户 顾客 ユーザー 顧客
    """),
    "item_id": _words("""
        item_id item iid product_id product sku sku_id stock_code article_id article aid asin parent_asin movie_id movie
        book_id book isbn track_id track_uri track song_id song video_id video content_id news_id news business_id goods_id
        listing_id poi_id venue_id location_id place_id adgroup_id ad_id creative_id recipe_id anime_id app_id game_id
        game hotel_id job_id course_id doc_id document_id photo_id artist_id artist beer_id post_id tweet_id question_id
        problem_id restaurant_id bookmark_id bookmark offer_id prod_id prod element_id repo_id merchant_id link_id
        campaign_id campaign target_id object_id
        material good url page_url page page_title uri cs_uri_stem path page_path request_path reference
        artikel artikel_id artikelnummer artikelnr produkt produkt_id producto producto_id articulo produit produto
        prodotto articolo товар продукт артикул 商品 商品id 商品编号 物品 产品 アイテム 商品コード 상품
    """),
    "timestamp": _words("""
        event_timestamp event_time event_datetime derived_tstamp timestamp collector_tstamp tstamp time ts datetime date_time time_stamp
        time_ms unix_review_time unix_time created_at created occurred_at invoice_date order_date visit_time start_time action_time click_time server_time
        log_time rated_at at utc_time local_time time_local review_time date day t t_dat hour dt ticks uts
        zeitstempel zeitpunkt zeit datum fecha_hora fecha hora horodatage data_hora datetime_utc
        время дата 时间 时间戳 日期 日時 시간
    """),
    "action": _words("""
        action event_type event event_name behavior behaviour behavior_type behaviour_type action_type type activity
        activity_type interaction interaction_type operation verb feedback feedback_type op btag method action_name
        log_type transaction_type txn_type trans_type evt reaction engagement vote
        aktion ereignis accion evento acao azione evenement действие событие 行为 行为类型 操作 行動 イベント 이벤트
    """),
}
# What a name may end with and still name the same thing: `session_id_hash`, `track_id_clean`.
ID_SUFFIXES = frozenset(
    _words("""
        id ids uid key code hash hashed uuid guid sk pk fk cd ref unique clean enc encoded encrypted anon raw uri
        name full display nick
    """)
)
NUMBER_SUFFIXES = frozenset(_words("no nr num number"))
SUFFIXES = {
    "user_id": ID_SUFFIXES,
    "item_id": ID_SUFFIXES,
    "timestamp": frozenset(_words("ms us ns s sec secs seconds millis micros epoch unix utc gmt local iso raw")),
    "action": frozenset(_words("type typ name id code cd kind")),
}
# Words that say what was done only when they are the whole name: a `device_type` does not.
WHOLE_ONLY = frozenset(["type", "method", "op", "at", "t"])
# A name with one of these tells a property or an amount, and neither who, what nor when.
FLAGS = frozenset(_words("is has num nb count cnt avg mean total sum max min days since per of"))
# A column that is named so tells how much, where or which kind, and is no id.
MEASURES = frozenset(
    _words("""
    quantity qty amount price spend sales value cost disc discount count cnt rating ratings stars score weight rank
    position step length duration seconds minutes hours hour minute second day weekday month year week dow age gender sex
    lat latitude lon lng longitude country city region state currency lang language category type class brand color size
    number
    cantidad precio menge preis anzahl betrag количество цена 数量 价格
    """)
)
ACTION_NAMES = frozenset(
    _words("""
    view views click clicks pv cart carts addtocart add_to_cart fav favorite favourite buy purchase purchases order orders
    transaction like dislike share comment impression impressions play skip search add remove checkout collect follow
    remove_from_cart wishlist rating visit read pageview page_view listen save download install get post booking conversion
    kauf ansicht warenkorb compra vista просмотр покупка корзина 浏览 点击 收藏 加购 购买
    """)
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
    *("0000-00-00", "0000-00-00 00:00:00"),
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
    """A name without case, accents and punctuation.

    >>> plain("User-ID"), plain("InvoiceDate"), plain("Acción"), plain("用户 ID")
    ('userid', 'invoicedate', 'accion', '用户id')
    """
    if name.isascii():
        return re.sub(r"[^a-z0-9]", "", name.lower())
    letters = unicodedata.normalize("NFKD", name.lower())
    return re.sub(r"[\W_]", "", "".join(letter for letter in letters if not unicodedata.combining(letter)))


def words_of(name: str) -> list[str]:
    """The words of a name.

    >>> words_of("SHOP_HOUR"), words_of("clickArticleId"), words_of("Дата и время")
    (['shop', 'hour'], ['click', 'article', 'id'], ['дата', 'и', 'время'])
    """
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[\W_]+", split.lower()) if word]


@lru_cache
def _ranks(role: str) -> dict[str, int]:
    words = [plain(word) for word in ROLE_WORDS[role]]
    return {word: max(10, 100 - words.index(word)) for word in words}


def name_score(name: str, role: str) -> int:
    """How well a name fits a role: 100 for the most telling, 0 for none.

    Of a path such as `event.user.id` the last two parts count as well. A name that ends with the word, as
    `order_product` does, counts less: the last word says what it is, so that `product_category` does not. A last part
    such as `$oid` is no name.
    """
    name = WRAPPER.sub("", name)
    ranks, parts = _ranks(role), name.split(".")
    whole = [name, *(".".join(parts[-n:]) for n in (2, 1) if len(parts) > n)]
    exact = [ranks[plain(text)] - 2 * at for at, text in enumerate(whole) if plain(text) in ranks]
    if exact:
        return max(exact)
    words = words_of(parts[-1])
    if len(parts) > 1 and set(words) <= SUFFIXES[role]:  # verb.id
        words = words_of(parts[-2]) + words
    if not words or FLAGS & set(words):
        return 0
    kept = list(words)
    while len(kept) > 1 and kept[-1] in SUFFIXES[role]:
        kept.pop()
    stem = plain("".join(kept))
    has_id = {"id", "ids", "uid"} & set(words)
    last = plain(kept[-1])
    for text in (
        stem,
        stem.removeprefix("id"),
        *((f"{stem}id", f"{last}id") if has_id else ()),
    ):  # idvisitor, id_student
        if text in ranks and text not in WHOLE_ONLY and text != plain(name):
            return max(5, ranks[text] - 4)
    if role in ("user_id", "item_id") and len(kept) > 1 and kept[-1] in NUMBER_SUFFIXES:
        kept.pop()
    first = kept[0] in ("date", "datum", "fecha", "дата") and role == "timestamp"
    ends = ["".join(kept[-2:]), kept[-1], *(kept[:1] if first else ())]
    inner = [ranks[plain(word)] // 3 for word in ends if plain(word) in ranks and word not in WHOLE_ONLY]
    return max(inner, default=0)


def mentions_role(name: str) -> bool:
    """Whether a name has anything to do with events, as those of columns have."""
    words = {plain(word) for word in words_of(name) if len(word) > 1}
    return any(name_score(name, role) > 0 or words & _ranks(role).keys() for role in ROLE_WORDS)


def is_measure(name: str) -> bool:
    """Whether a name tells an amount, a place, a kind or a flag, so that its column holds no ids.

    >>> is_measure("SHOP_HOUR"), is_measure("is_booking"), is_measure("PROD_CODE")
    (True, True, False)
    """
    words = words_of(name)
    return bool(words) and (words[-1] in MEASURES or words[0] in ("is", "has", "num", "nb") or "since" in words)


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> listed(["a", "b", "c"]), listed([])
    ('a, b and c', 'none')
    """
    if len(names) > MOST_LISTED + 1:
        names = [*names[:MOST_LISTED], f"{len(names) - MOST_LISTED} others"]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else "none"
