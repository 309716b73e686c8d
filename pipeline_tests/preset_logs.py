"""For each preset a file as the publisher of its log writes it, with invented ids, and the events that it means."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Log:
    """A file as the log's publisher writes it, with invented ids, and the events that it means.

    Attributes:
        file: Its name.
        text: All of it.
        events: user, item, time (UTC), action and the extra columns in declared order; in input order.
        rejected: line and reason of the rows that are refused.
    """

    file: str
    text: str
    events: list[tuple]
    rejected: list[tuple[int | None, str]] = field(default_factory=list)

    @property
    def day(self) -> str:
        return self.events[0][2][:10]


LOGS = {
    "taobao": Log(
        file="UserBehavior.csv",
        text="11,5001,301,pv,1511568000\n11,5001,301,cart,1511568061\n12,5002,302,fav,1511571600\n12,5002,302,buy,1511654399\n",
        events=[
            (11, 5001, "2017-11-25T00:00:00", "pv", 301),
            (11, 5001, "2017-11-25T00:01:01", "cart", 301),
            (12, 5002, "2017-11-25T01:00:00", "fav", 302),
            (12, 5002, "2017-11-25T23:59:59", "buy", 302),
        ],
    ),
    "retailrocket": Log(
        file="events.csv",
        text=(
            "timestamp,visitorid,event,itemid,transactionid\n"
            "1433203201500,71,view,900,\n"
            "1433203260000,71,addtocart,900,\n"
            "1433206800001,71,transaction,900,55\n"
        ),
        events=[
            (71, 900, "2015-06-02T00:00:01.500000", "view", None),
            (71, 900, "2015-06-02T00:01:00", "addtocart", None),
            (71, 900, "2015-06-02T01:00:00.001000", "transaction", 55),
        ],
    ),
    "rees46": Log(
        file="2019-Oct.csv",
        text=(
            "event_time,event_type,product_id,category_id,category_code,brand,price,user_id,user_session\n"
            "2019-10-01 00:00:07 UTC,view,61,2050000000000000001,electronics.phone,acme,489.07,31,00000000-aaaa-4000-8000-000000000001\n"
            "2019-10-01 00:01:07 UTC,cart,62,2050000000000000002,,,35.79,31,00000000-aaaa-4000-8000-000000000001\n"
            "2019-10-01 10:00:00 UTC,remove_from_cart,62,2050000000000000002,,,35.79,31,\n"
            "2019-10-01 23:59:59 UTC,purchase,63,1487580000000000003,,zeta,-7.94,32,00000000-bbbb-4000-8000-000000000002\n"
        ),
        events=[
            (31, 61, "2019-10-01T00:00:07", "view", 2050000000000000001, "electronics.phone", "acme", 489.07, "00000000-aaaa-4000-8000-000000000001"),
            (31, 62, "2019-10-01T00:01:07", "cart", 2050000000000000002, None, None, 35.79, "00000000-aaaa-4000-8000-000000000001"),
            (31, 62, "2019-10-01T10:00:00", "remove_from_cart", 2050000000000000002, None, None, 35.79, None),
            (32, 63, "2019-10-01T23:59:59", "purchase", 1487580000000000003, None, "zeta", -7.94, "00000000-bbbb-4000-8000-000000000002"),
        ],
    ),
    "movielens_100k": Log(
        file="u.data",
        text="901\t21\t3\t881193649\n902\t22\t5\t881193600\n",
        events=[
            (901, 21, "1997-12-04T00:00:49", "rating", 3.0),
            (902, 22, "1997-12-04T00:00:00", "rating", 5.0),
        ],
    ),
    "movielens_dat": Log(
        file="ratings.dat",
        text="7::1101::5::978307200\n7::1102::3.5::978307261\n",
        events=[
            (7, 1101, "2001-01-01T00:00:00", "rating", 5.0),
            (7, 1102, "2001-01-01T00:01:01", "rating", 3.5),
        ],
    ),
    "movielens_csv": Log(
        file="ratings.csv",
        text="userId,movieId,rating,timestamp\n8,201,4.0,1427760000\n8,202,0.5,1427763600\n",
        events=[
            (8, 201, "2015-03-31T00:00:00", "rating", 4.0),
            (8, 202, "2015-03-31T01:00:00", "rating", 0.5),
        ],
    ),
    "yoochoose": Log(
        file="yoochoose-clicks.dat",
        text=(
            "41,2014-04-07T10:51:09.277Z,214500001,0\n"
            "41,2014-04-07T10:54:09.868Z,214500002,S\n"
            "42,2014-04-07T13:56:37.614Z,214500003,12\n"
        ),
        events=[
            (41, 214500001, "2014-04-07T10:51:09.277000", "click", None),
            (41, 214500002, "2014-04-07T10:54:09.868000", "click", "S"),
            (42, 214500003, "2014-04-07T13:56:37.614000", "click", "12"),
        ],
    ),
    "diginetica": Log(
        file="train-item-views.csv",
        text=(
            "sessionId;userId;itemId;timeframe;eventdate\n"
            "1;NA;801;526309;2016-05-09\n"
            "1;NA;802;31018;2016-05-09\n"
            "2;5501;803;0;2016-05-09\n"
        ),
        events=[
            (1, 801, "2016-05-09T00:08:46.309000", "view", None),
            (1, 802, "2016-05-09T00:00:31.018000", "view", None),
            (2, 803, "2016-05-09T00:00:00", "view", 5501),
        ],
    ),
    "otto": Log(
        file="train.jsonl",
        text=(
            '{"session":3,"events":[{"aid":100,"ts":1659312000025,"type":"clicks"},{"aid":101,"ts":1659312060000,"type":"carts"}]}\n'
            '{"session":4,"events":[{"aid":101,"ts":1659315600000,"type":"orders"}]}\n'
        ),
        events=[
            (3, 100, "2022-08-01T00:00:00.025000", "clicks"),
            (3, 101, "2022-08-01T00:01:00", "carts"),
            (4, 101, "2022-08-01T01:00:00", "orders"),
        ],
    ),
    "lastfm_1k": Log(
        file="userid-timestamp-artid-artname-traid-traname.tsv",
        text=(
            "user_900001\t2009-04-08T01:57:47Z\taaaaaaaa-0000-4000-8000-000000000001\tThe \"Quoted\tbbbbbbbb-0000-4000-8000-000000000001\tFirst Song?\n"
            "user_900001\t2009-04-08T01:53:56Z\t\tSomeone Else\t\t\"Second\" Song\n"
        ),
        events=[
            ("user_900001", "bbbbbbbb-0000-4000-8000-000000000001", "2009-04-08T01:57:47", "play", "aaaaaaaa-0000-4000-8000-000000000001", 'The "Quoted', "First Song?"),
            ("user_900001", None, "2009-04-08T01:53:56", "play", None, "Someone Else", '"Second" Song'),
        ],
    ),
    "gowalla": Log(
        file="loc-gowalla_totalCheckins.txt",
        text="0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22001\n0\t2010-10-19T22:17:43Z\t-30.5\t97.0\t22002\n",
        events=[
            (0, 22001, "2010-10-19T23:55:27", "checkin", 30.2359091167, -97.7951395833),
            (0, 22002, "2010-10-19T22:17:43", "checkin", -30.5, 97.0),
        ],
    ),
    "amazon_2018": Log(
        file="All_Beauty.json",
        text=(
            '{"overall": 5.0, "vote": "1,234", "verified": true, "reviewTime": "01 1, 2018", "reviewerID": "A0INVENTED0001", "asin": "0000000011", "style": {"Size:": " Large"}, "reviewerName": "A. B.", "reviewText": "Fine, \\"really\\".", "summary": "Fine", "unixReviewTime": 1514764800}\n'
            '{"reviewerID": "A0INVENTED0002", "asin": "B0INVENTED", "reviewText": "Well", "overall": 2.0, "summary": "Well", "unixReviewTime": 1514764800, "reviewTime": "01 1, 2018"}\n'
        ),
        events=[
            ("A0INVENTED0001", "0000000011", "2018-01-01T00:00:00", "review", 5.0, True),
            ("A0INVENTED0002", "B0INVENTED", "2018-01-01T00:00:00", "review", 2.0, None),
        ],
    ),
    "kuairand": Log(
        file="log_standard_4_08_to_4_21_1k.csv",
        text=(
            "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_view,play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab\n"
            "3,4001,20220408,800,1649376000123,1,1,0,0,0,0,1,175045,87433,0,0,0,0,1\n"
            "3,4002,20220408,800,1649376060000,0,0,0,0,0,1,0,0,65400,0,0,0,1,4\n"
        ),
        events=[
            (3, 4001, "2022-04-08T00:00:00.123000", "click", True, False, False, False, False, True, 175045, 87433, False, 1),
            (3, 4002, "2022-04-08T00:01:00", "impression", False, False, False, False, True, False, 0, 65400, True, 4),
        ],
    ),
    "mind": Log(
        file="behaviors.tsv",
        text=(
            "1\tU101\t11/15/2019 8:55:22 AM\tN7001 N7002\tN8001-1 N8002-0\n"
            "2\tU102\t11/15/2019 12:10:05 PM\t\tN8003-0\n"
            "3\tU103\t11/15/2019 12:10:06 AM\tN7001\tN8004 N8005\n"
        ),
        events=[
            ("U101", "N8001", "2019-11-15T08:55:22", "click", 1),
            ("U101", "N8002", "2019-11-15T08:55:22", "impression", 1),
            ("U102", "N8003", "2019-11-15T12:10:05", "impression", 2),
        ],
        rejected=[(3, "malformed_line"), (3, "malformed_line")],
    ),
    "recbole": Log(
        file="ml-1m.inter",
        text="user_id:token\titem_id:token\trating:float\ttimestamp:float\n01\tA\"1\t5\t978307200\n1\tB2\t3\t978307260.0\n",
        events=[
            ("01", 'A"1', "2001-01-01T00:00:00", "interaction"),
            ("1", "B2", "2001-01-01T00:01:00", "interaction"),
        ],
    ),
}  # fmt: skip
