"""What is declared of Claude Code (provider-tape §7.1)."""

from cassettes.providers.ports import Provider

CLAUDE_CODE = Provider(
    id="claude-code",
    target="local:claude-code",
    title="Claude Code",
    codec_id="claude-sidecar-ndjson-v7",
    input_observer="claude-sidecar-ndjson-v7-input-units",
    projection="claude-sidecar-ndjson-v7-portable-v1",
    request_member="type",
    generated_identity_fields=frozenset(
        {
            "agentsessionid",
            "providerturnid",
            "turnid",
            "promptcorrelationid",
            "goaloperationid",
            "operationid",
            "sourcegoaloperationid",
        }
    ),
    match_only_identity_fields=frozenset({"providersessionid"}),
    environment_excluded=True,
    home_variables=("CLAUDE_CONFIG_DIR",),
    session_home_folder="claude-home",
    response_types=frozenset({"ok", "error"}),
)
