"""What is declared of agents that speak the Agent Client Protocol, such as Gemini CLI."""

from cassettes.providers.ports import Provider

ACP = Provider(
    id="acp",
    target="local:acp",
    title="ACP agent",
    codec_id="json-rpc",
    input_observer="acp-json-input-units",
    projection="json-rpc-portable-v1",
    request_member="method",
    credential_methods=frozenset({"authenticate"}),
)
