#!/bin/sh
# Prints an .env file with new keys for compose.yaml. Save it: without MASTER_KEY, stored secrets cannot be read.
# Usage: (umask 077 && deploy/compose/create-keys.sh > deploy/compose/.env)
set -eu
key() { openssl rand -base64 32; }
echo "MASTER_KEY=$(key)"
for service in GATEWAY ORCHESTRATOR FACTORIES SCHEDULER SCORING METRICS WEBHOOK_INGRESS; do
  echo "SERVICE_KEY_$service=$(key)"
done
echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)"
echo "MILLWRIGHT_BOOTSTRAP_API_KEY=mw_$(openssl rand -hex 24)"
echo "MILLWRIGHT_WORKER_KEY=mww_$(openssl rand -hex 24)"
