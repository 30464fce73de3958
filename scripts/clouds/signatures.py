"""Signs seeded requests with botocore, and mints bearer keys with AWS's own generator. Prints one JSON object a line."""

import base64, datetime, json, random, sys, urllib.parse
import botocore.auth
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

count = int(sys.argv[1])
random.seed(7)
clock = {}
botocore.auth.get_current_datetime = lambda remove_tzinfo=True: clock["now"]

models = ["anthropic.claude-opus-5-v1:0", "global.anthropic.claude-opus-5-5", "a b+c%d/é", "m!*'()", "x_y~z",
          "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/ab12cd34"]
hosts = [("bedrock-runtime.{}.amazonaws.com", "bedrock"), ("bedrock-mantle.{}.api.aws", "bedrock-mantle"),
         ("aws-external-anthropic.{}.api.aws", "aws-external-anthropic"), ("sts.{}.amazonaws.com", "sts"),
         ("127.0.0.1:8081", "bedrock")]
safe = "-_.~"


def path():
    model = random.choice(models)
    # A path as a client sends it: some leave what a segment may have as it is.
    segment = urllib.parse.quote(model, safe=random.choice([safe, safe + "!*'():@", safe + "/:"]))
    kinds = ["/model/" + segment + "/invoke", "/model/" + segment + "/invoke-with-response-stream",
             "/v1/projects/p/models/" + segment + ":rawPredict", "/anthropic/v1/messages", "/", "/a//b/./c/../d/"]
    return random.choice(kinds)


for i in range(count):
    clock["now"] = datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=random.randrange(10**8))
    region = random.choice(["us-east-1", "eu-central-1", "ap-northeast-1", "us-gov-west-1", "cn-north-1"])
    host, service = random.choice(hosts)
    body = random.randbytes(random.choice([0, 1, 10, 1000, 5000]))
    token = random.choice([None, base64.b64encode(random.randbytes(60)).decode()])
    headers = {"content-type": random.choice(["application/json", "application/json; charset=utf-8"])}
    if random.random() < 0.5: headers["X-Amzn-Bedrock-Accept"] = "application/json"
    if random.random() < 0.3: headers["x-amzn-bedrock-request-metadata"] = '  {"a":  "b c"} '
    pairs = [(random.choice("abAB-_~ é+"), random.choice(["1", "x y", "é", "a/b", "=&", ""]))
             for _ in range(random.choice([0, 0, 1, 2, 3]))]
    query = "&".join(urllib.parse.quote(name, safe=safe) + "=" + urllib.parse.quote(value, safe=safe) for name, value in pairs)
    target = path() + ("?" + query if query else "")
    secret = base64.b64encode(random.randbytes(30)).decode()
    host = host.format(region)
    request = AWSRequest("POST", "https://" + host + target, headers=dict(headers), data=body)
    SigV4Auth(Credentials("AKID%d" % i, secret, token), service, region).add_auth(request)
    print(json.dumps({
        "kind": "signature", "host": host, "path": target, "headers": headers, "body": base64.b64encode(body).decode(),
        "id": "AKID%d" % i, "secret": secret, "token": token, "region": region, "service": service,
        "ms": int((clock["now"] - datetime.datetime(1970, 1, 1)).total_seconds() * 1000),
        "expected": request.headers["Authorization"]}))

from aws_bedrock_token_generator import BedrockTokenGenerator

for i in range(count // 10):
    clock["now"] = datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=random.randrange(10**8))
    token = random.choice([None, base64.b64encode(random.randbytes(60)).decode()])
    secret = base64.b64encode(random.randbytes(30)).decode()
    region = random.choice(["us-east-1", "eu-central-1"])
    bearer = BedrockTokenGenerator().get_token(Credentials("AKID%d" % i, secret, token), region)
    print(json.dumps({
        "kind": "bearer", "id": "AKID%d" % i, "secret": secret, "token": token, "region": region,
        "ms": int((clock["now"] - datetime.datetime(1970, 1, 1)).total_seconds() * 1000), "expected": bearer}))
