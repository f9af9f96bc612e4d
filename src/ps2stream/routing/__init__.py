"""Routing: grid^t, the dispatcher's index (Sec. IV-C), and what routes the stream now.

    routing   the newest plan, and for a while an older one beside it; since which seq
    index     GridT, a thin class: H1 comes from the plan, H2 is counted here
    layout    the arrays of H2, and the posting terms of subscriptions
    route     which workers does a publication go to? A term must have a live subscription in its cell (H2),
              and an owner (H1)
    update    count subscriptions in and out of H2; which workers store one
    tiles     cells of one owner joined to rectangles, for regions that touch very many of them

H2 may hold too much (that costs work), never too little (that would lose a match). Open ``route`` first.
"""
