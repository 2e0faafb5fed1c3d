"""What is declared of Codex (provider-tape §7.1)."""

from cassettes.providers.ports import Provider

CODEX = Provider(
    id="codex",
    target="local:codex",
    title="Codex",
    codec_id="json-rpc",
    input_observer="acp-json-input-units",
    projection="json-rpc-portable-v1",
    request_member="method",
    credential_methods=frozenset({"account/login/start", "account/chatgptauthtokens/refresh"}),
    optional_probes=frozenset({"thread/read", "thread/goal/get"}),
    account_read_method="account/read",
    generated_request_fields=(
        ("turn/start", "clientusermessageid", "plan-decision:", "plan-decision:<runtime-operation>"),
    ),
    generated_identity_fields=frozenset({"clientusermessageid"}),
    home_variables=("CODEX_HOME",),
    session_home_folder="codex-home",
)
