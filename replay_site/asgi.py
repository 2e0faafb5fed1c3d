"""The server's entrance: pages and API by Django, viewers' sockets by Channels."""

from __future__ import annotations

import os
import threading
import warnings

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replay_site.settings")
# WhiteNoise answers with plain iterators of small files; Django would warn at each of them.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

pages = get_asgi_application()  # first: it makes the models importable

from cassettes import uploads  # noqa: E402
from cassettes.consumers import websocket_urlpatterns  # noqa: E402
from replay_site.limits import BodyLimit  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(
            pages,
            most=settings.REPRISE_MAX_BODY,
            upload=settings.REPRISE_MAX_UPLOAD + settings.REPRISE_MAX_BODY,
            upload_paths=("/uploads/", "/api/uploads"),
        ),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)

# Only a server imports this module; commands and tests do not. It must not keep the server from listening.
threading.Thread(target=uploads.start_server, name="start-up", daemon=True).start()
