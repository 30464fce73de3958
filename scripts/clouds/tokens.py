"""Prints the token requests of google-auth, msal and botocore for fixed settings, as one JSON object a line. Nothing is asked."""

import json, sys, urllib.parse, warnings

warnings.simplefilter("ignore")

folder = sys.argv[1]


def show(name, method, url, body, headers):
    split = urllib.parse.urlsplit(url)
    body = body.decode() if isinstance(body, bytes) else body or ""
    fields = dict(body) if isinstance(body, dict) else json.loads(body) if body.startswith("{") else dict(urllib.parse.parse_qsl(body))
    print(json.dumps({"name": name, "method": method, "path": split.path, "query": dict(urllib.parse.parse_qsl(split.query)),
                      "fields": fields, "headers": {k.lower(): str(v) for k, v in dict(headers or {}).items()}}))


class Answer:
    def __init__(self, data, headers={}):
        self.status = self.status_code = 200
        self.data = self.content = json.dumps(data).encode()
        self.text, self.headers = json.dumps(data), headers

    def raise_for_status(self): pass


def google_transport(name):
    def ask(url, method="GET", body=None, headers=None, **_):
        show(name + (" impersonation" if "generateAccessToken" in url else ""), method, url, body, headers)
        return Answer({"access_token": "t", "expires_in": 3600, "accessToken": "t", "expireTime": "2099-01-01T00:00:00Z"})
    return ask


from google.oauth2 import service_account
import google.auth.identity_pool

scopes = ["https://www.googleapis.com/auth/cloud-platform"]
service_account.Credentials.from_service_account_file(folder + "/service-account.json", scopes=scopes).refresh(google_transport("service account"))
with open(folder + "/external-account.json") as file:
    google.auth.identity_pool.Credentials.from_info(json.load(file), scopes=scopes).refresh(google_transport("federation"))

import msal


class Client:
    def __init__(self, name): self.name = name

    def get(self, url, params=None, headers=None, **_):
        if "openid-configuration" in url:
            base = "https://login.microsoftonline.com/the-tenant"
            return Answer({"token_endpoint": base + "/oauth2/v2.0/token", "authorization_endpoint": base + "/a", "issuer": base + "/v2.0"})
        show(self.name, "GET", url + "?" + urllib.parse.urlencode(params or {}), "", headers)
        return Answer({"access_token": "t", "expires_in": "3600", "expires_on": "4070908800", "resource": "r", "token_type": "Bearer"})

    def post(self, url, data=None, headers=None, **_):
        show(self.name, "POST", url, data, headers)
        return Answer({"access_token": "t", "expires_in": 3600, "token_type": "Bearer"})

    def close(self): pass


for name, credential in [("client secret", "the-secret"), ("workload identity", {"client_assertion": "federated-word"})]:
    app = msal.ConfidentialClientApplication("the-client", client_credential=credential, http_client=Client(name),
                                             authority="https://login.microsoftonline.com/the-tenant", instance_discovery=False)
    app.acquire_token_for_client(["https://ai.azure.com/.default"])

import os

identity = msal.UserAssignedManagedIdentity(client_id="the-client")
msal.ManagedIdentityClient(identity, http_client=Client("managed identity of the machine")).acquire_token_for_client(resource="https://ai.azure.com")
os.environ.update(IDENTITY_ENDPOINT="http://127.0.0.1/msi/token", IDENTITY_HEADER="identity-word")
msal.ManagedIdentityClient(identity, http_client=Client("managed identity of the service")).acquire_token_for_client(resource="https://ai.azure.com")

import botocore.session, botocore.awsrequest, datetime, io

session = botocore.session.Session()
sts = session.create_client("sts", region_name="eu-central-1", aws_access_key_id="AKIA", aws_secret_access_key="s")
name = action = None
answer = "<R><{0}Result><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{0}Result></R>"


def before_send(request, **_):
    show(name, request.method, request.url, request.body, {})
    raw = io.BytesIO(answer.format(action).encode())
    raw.stream = lambda **_: [raw.read()]
    return botocore.awsrequest.AWSResponse(request.url, 200, {}, raw)


sts.meta.events.register("before-send", before_send)
role = "arn:aws:iam::123456789012:role/llm"
name, action = "role", "AssumeRole"
sts.assume_role(RoleArn=role, RoleSessionName="triwire", ExternalId="ext")
name, action = "web identity", "AssumeRoleWithWebIdentity"
sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName="triwire", WebIdentityToken="web-word-1")
