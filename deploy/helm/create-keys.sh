#!/bin/sh
# Creates the Secrets that the chart refers to with the values small.yaml: new keys of the platform, and a password for the bundled
# PostgreSQL. Fails if they exist. Creates the namespace if it is missing. Usage: create-keys.sh NAMESPACE
set -eu
namespace="$1"
kubectl get namespace "$namespace" >/dev/null 2>&1 || kubectl create namespace "$namespace"
key() { openssl rand -base64 32; }
kubectl --namespace "$namespace" create secret generic millwright-keys \
  --from-literal=master-key="$(key)" \
  --from-literal=service-key-gateway="$(key)" \
  --from-literal=service-key-orchestrator="$(key)" \
  --from-literal=service-key-factories="$(key)" \
  --from-literal=service-key-scheduler="$(key)" \
  --from-literal=service-key-scoring="$(key)" \
  --from-literal=service-key-metrics="$(key)" \
  --from-literal=service-key-webhook-ingress="$(key)" \
  --from-literal=bootstrap-api-key="mw_$(openssl rand -hex 24)" \
  --from-literal=worker-key="mww_$(openssl rand -hex 24)"
kubectl --namespace "$namespace" create secret generic millwright-postgresql --from-literal=password="$(openssl rand -hex 24)"
