#!/usr/bin/env bash
# Installs the contestants that are not npm packages, on Debian or Ubuntu.
set -euo pipefail
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
$sudo apt-get update -qq
$sudo apt-get install -y -qq nginx haproxy wrk nghttp2-client
