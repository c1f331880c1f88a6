"""gRPC handlers and calls made from service descriptors, without generated stubs.

Generated `_pb2_grpc` modules refuse to run with a gRPC older than their generator's; descriptors
say the same (names and message types of every method) and have no such limit.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc
from google.protobuf import message_factory

Behaviour = Callable[[Any, Any], Awaitable[Any] | AsyncIterator[Any]]
"""A method: (request message, grpc.aio.ServicerContext) -> response message, or a stream of
them."""


def handlers(service: Any, behaviours: Mapping[str, Behaviour]) -> grpc.GenericRpcHandler:
    """Handlers of a service: one behaviour for each method of its descriptor.

    Each method takes one message; whether it answers one or a stream, the descriptor says.
    """
    kinds = {
        False: grpc.unary_unary_rpc_method_handler,
        True: grpc.unary_stream_rpc_method_handler,
    }
    return grpc.method_handlers_generic_handler(
        service.full_name,
        {
            method.name: kinds[method.server_streaming](
                behaviours[method.name],
                request_deserializer=_message(method.input_type).FromString,
                response_serializer=_message(method.output_type).SerializeToString,
            )
            for method in service.methods
        },
    )


async def call(
    channel: grpc.aio.Channel, service: Any, method: str, request: Any, *, timeout: float
) -> Any:
    """Calls a unary method and answers its message. Raises grpc.aio.AioRpcError."""
    descriptor = service.methods_by_name[method]
    stub = channel.unary_unary(
        f"/{service.full_name}/{method}",
        request_serializer=_message(descriptor.input_type).SerializeToString,
        response_deserializer=_message(descriptor.output_type).FromString,
    )
    return await stub(request, timeout=timeout)


def stream(channel: grpc.aio.Channel, service: Any, method: str, request: Any) -> Any:
    """Calls a method that answers a stream: `read` its messages; that raises AioRpcError."""
    descriptor = service.methods_by_name[method]
    stub = channel.unary_stream(
        f"/{service.full_name}/{method}",
        request_serializer=_message(descriptor.input_type).SerializeToString,
        response_deserializer=_message(descriptor.output_type).FromString,
    )
    return stub(request)


def _message(descriptor: Any) -> Any:
    return message_factory.GetMessageClass(descriptor)
