"""A round trip with the generated client in Python: create, read, edit, write back what was read, a refusal, revoke."""

import os

from admin import AuthenticatedClient
from admin.api.account import account_create, account_show, account_update
from admin.api.key import key_create, key_delete, key_list
from admin.models import AccountCreateBody, AccountUpdateBody, Budget, BudgetPer, KeyCreateBody, Problem

client = AuthenticatedClient(base_url=os.environ["ADMIN_URL"], token=os.environ["ADMIN_TOKEN"], raise_on_unexpected_status=True)

wish = AccountCreateBody(name="round trip of Python", credit="12.5", budget=Budget(credits_="5", per=BudgetPer.DAY))
made = account_create.sync_detailed(client=client, body=wish)
assert made.status_code == 201, made
account = made.parsed.id
assert made.headers["location"] == f"/api/v1/accounts/{account}"

read = account_show.sync_detailed(account, client=client)
assert (read.parsed.budget.credits_, read.parsed.budget.spent, read.parsed.balance) == ("5", "0", "12.5"), read
back = AccountUpdateBody(name=read.parsed.name, budget=read.parsed.budget, rpm=read.parsed.rpm, warn=read.parsed.warn)
same = account_update.sync_detailed(account, client=client, body=back, if_match=read.headers["etag"])
assert same.status_code == 200 and same.headers["etag"] == read.headers["etag"], same
assert same.parsed == read.parsed
other = account_update.sync(account, client=client, body=AccountUpdateBody(rpm=7), if_match=read.headers["etag"])
assert other.rpm == 7
stale = account_update.sync(account, client=client, body=AccountUpdateBody(rpm=8), if_match=read.headers["etag"])
assert isinstance(stale, Problem) and stale.status == 412, stale

key = key_create.sync(account, client=client, body=KeyCreateBody(label="one", models=["native-chat"]))
assert key.key.startswith("sk-tri-")
assert [one.label for one in key_list.sync(client=client, account=account).items] == ["one"]
assert key_delete.sync(key.id, client=client).revoked is not None
print("created, read, edited, written back, refused when stale, revoked")
