"""url() and its methods. Source: k8s.io/apiserver 0.37 `cel/library/urls.go`."""

from typing import Final

from dragoon.cel.functions import Library, accepts, function, method, translated
from dragoon.cel.types import BOOL, STRING, URL, list_of, map_of
from dragoon.cel.urls import Url, check_request_uri, parse_url

FUNCTIONS: Final[Library] = {
    "url": (function(translated(parse_url), STRING, result=URL),),
    "isURL": (function(accepts(check_request_uri), STRING, result=BOOL),),
    "getScheme": (method(lambda url: url.scheme, URL, result=STRING),),
    "getHost": (method(lambda url: url.host, URL, result=STRING),),
    "getHostname": (method(lambda url: url.hostname, URL, result=STRING),),
    "getPort": (method(lambda url: url.port, URL, result=STRING),),
    "getEscapedPath": (method(lambda url: url.escaped_path, URL, result=STRING),),
    "getQuery": (method(Url.parameters, URL, result=map_of(STRING, list_of(STRING))),),
}
