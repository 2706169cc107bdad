"""Asks the broker of this pod over TLS, as the broker itself: probe.py PATH KEYSTORE AUTHORITY."""

import ssl
import sys
import urllib.error
import urllib.request

path, keystore, authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
# The certificate names the pod, and this is its own loopback address.
context.check_hostname = False
context.load_cert_chain(keystore)
try:
    with urllib.request.urlopen(f"https://127.0.0.1:9404{path}", timeout=4, context=context) as answer:
        sys.stdout.write(answer.read().decode())
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
except OSError as error:
    sys.exit(str(error))
