{{- define "millwright.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* Labels that select the pods of a component. */}}
{{- define "millwright.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "millwright.labels" -}}
{{ include "millwright.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: millwright
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "millwright.image" -}}
{{- $image := index .root.Values.images .name -}}
{{- $name := $image.repository -}}
{{- if .root.Values.images.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" .root.Values.images.registry) $name }}{{ end -}}
{{- if $image.digest }}{{ $name }}@{{ $image.digest }}{{ else }}{{ $name }}:{{ default .root.Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{- define "millwright.publicHost" -}}
{{- (urlParse .Values.publicUrl).host | splitList ":" | first -}}
{{- end }}

{{- define "millwright.webhookHost" -}}
{{- with .Values.webhookUrl }}{{ (urlParse .).host | splitList ":" | first }}{{ end }}
{{- end }}

{{- /* Who connects to whom. `rpc`: services that a service calls. `keys`: those whose public keys it reads besides, because they call it. */}}
{{- define "millwright.edges" -}}
gateway: { rpc: [orchestrator, factories, scheduler, scoring, metrics, webhook-ingress], keys: [] }
orchestrator: { rpc: [gateway, factories], keys: [scheduler, scoring, metrics] }
factories: { rpc: [gateway, orchestrator, scheduler, scoring, webhook-ingress], keys: [metrics] }
scheduler: { rpc: [gateway, orchestrator, factories], keys: [] }
scoring: { rpc: [gateway, orchestrator, factories], keys: [] }
metrics: { rpc: [gateway, orchestrator, factories, webhook-ingress], keys: [] }
webhook-ingress: { rpc: [gateway, factories], keys: [metrics] }
{{- end }}

{{- /* The settings of a service: its own over the defaults. */}}
{{- define "millwright.service" -}}
{{- mergeOverwrite (deepCopy .root.Values.defaults) (deepCopy (index .root.Values.services .name | default dict)) | toYaml -}}
{{- end }}

{{- define "millwright.worker" -}}
{{- mergeOverwrite (deepCopy .root.Values.workerDefaults) (deepCopy (index .root.Values.workers .name | default dict)) | toYaml -}}
{{- end }}

{{- /* Pod security profile "restricted". */}}
{{- define "millwright.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "millwright.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "millwright.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "millwright.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- /* Spreads the replicas of a Deployment over nodes and zones. */}}
{{- define "millwright.topologySpread" -}}
{{- if .of.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $.of.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels: {{- $.selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end }}

{{- define "millwright.disruptionBudget" -}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "millwright.fullname" .root }}-{{ .component }}
  labels: {{- include "millwright.labels" (dict "root" .root "component" .component) | nindent 4 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "millwright.selector" (dict "root" .root "component" .component) | nindent 6 }}
{{- end }}

{{- define "millwright.secretSettings" -}}
{{- range $variable, $source := . }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $source.name }}, key: {{ $source.key }} } }
{{- end }}
{{- end }}

{{- /* DATABASE_URL of a service, and the server of the bundled PostgreSQL for its migrations. */}}
{{- define "millwright.databaseEnv" -}}
{{- if .root.Values.postgresql.enabled }}
- name: POSTGRES_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ .root.Values.postgresql.existingSecret }}, key: password } }
- name: {{ if .isMigration }}MILLWRIGHT_DATABASE_URL{{ else }}DATABASE_URL{{ end }}
  value: postgres://millwright:$(POSTGRES_PASSWORD)@{{ include "millwright.fullname" .root }}-postgresql:5432/{{ if .isMigration }}postgres{{ else }}millwright_{{ .name }}{{ end }}
{{- else }}
- name: DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ .root.Values.database.existingSecret }}, key: {{ .name }} } }
{{- end }}
{{- end }}

{{- /* Refuses values that cannot work, with what to do. */}}
{{- define "millwright.validate" -}}
{{- with .Values }}
{{- if not .publicUrl }}{{ fail "publicUrl is required: the URL at which users reach the platform." }}{{ end }}
{{- if not .keys.existingSecret }}{{ fail "keys.existingSecret is required: create the Secret as in docs/operations/install.md." }}{{ end }}
{{- if and .postgresql.enabled .database.existingSecret }}{{ fail "Set either postgresql.enabled or database.existingSecret, not both." }}{{ end }}
{{- if not (or .postgresql.enabled .database.existingSecret) }}{{ fail "Set database.existingSecret, or postgresql.enabled for a trial." }}{{ end }}
{{- if and .postgresql.enabled (not .postgresql.existingSecret) }}{{ fail "postgresql.existingSecret is required: a Secret with the key `password`." }}{{ end }}
{{- if and .nats.enabled .nats.existingSecret }}{{ fail "Set either nats.enabled or nats.existingSecret, not both." }}{{ end }}
{{- if eq (empty .blobs.url) (not .blobs.volume.enabled) }}{{ fail "Set either blobs.url or blobs.volume.enabled." }}{{ end }}
{{- if and .blobs.url (not .blobs.existingSecret) }}{{ fail "blobs.existingSecret is required with blobs.url." }}{{ end }}
{{- if and (eq .tls.mode "certManager") (not .tls.issuerRef.name) }}{{ fail "tls.issuerRef.name is required with tls.mode certManager." }}{{ end }}
{{- range $name, $own := .workers }}
{{- $worker := mergeOverwrite (deepCopy $.Values.workerDefaults) (deepCopy ($own | default dict)) }}
{{- if and (eq $worker.backend "kubernetes") (ne (int $worker.replicas) 1) }}{{ fail (printf "workers.%s: a worker with the backend kubernetes has one replica." $name) }}{{ end }}
{{- if and (eq $worker.backend "kubernetes") (ne $worker.podSecurity "restricted") }}{{ fail (printf "workers.%s: podSecurity must be restricted with the backend kubernetes; its own pod executes nothing." $name) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Peers of a NetworkPolicy: the pods of components. */}}
{{- define "millwright.peers" -}}
{{- $root := .root }}
{{- range .components }}
- podSelector:
    matchLabels: {{- include "millwright.selector" (dict "root" $root "component" .) | nindent 6 }}
{{- end }}
{{- end }}

{{- /* Networks as peers; none: every address. */}}
{{- define "millwright.networks" -}}
{{- with . }}
to:
  {{- range . }}
  - ipBlock: { cidr: {{ . | quote }} }
  {{- end }}
{{- end }}
{{- end }}

{{- define "millwright.collector" -}}
{{- with .Values.networkPolicy.collectorNetworks }}
- ports: [{ port: {{ $.Values.networkPolicy.collectorPort }}, protocol: TCP }]
  {{- include "millwright.networks" . | indent 2 }}
{{- end }}
{{- end }}

{{- /* Addresses outside of the platform. An exception applies to the networks of its own family. */}}
{{- define "millwright.outside" -}}
{{- $except := .Values.networkPolicy.outsideExcept }}
{{- with .Values.networkPolicy.outsideNetworks }}
- to:
    {{- range . }}
    {{- $cidr := . }}
    {{- $excluded := list }}
    {{- range $except }}{{ if eq (contains ":" .) (contains ":" $cidr) }}{{ $excluded = append $excluded . }}{{ end }}{{ end }}
    - ipBlock:
        cidr: {{ $cidr | quote }}
        {{- with $excluded }}
        except: {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "millwright.extraMounts" -}}
{{- if .root.Values.certificateAuthorities.configMap }}
- { name: authorities, mountPath: /etc/millwright/authorities, readOnly: true }
{{- end }}
{{- with .of.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "millwright.extraVolumes" -}}
{{- with .root.Values.certificateAuthorities.configMap }}
- name: authorities
  configMap: { name: {{ . }} }
{{- end }}
{{- with .of.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The text of a setting. YAML's numbers are floats in Helm, which it would print as 2e+07. */}}
{{- define "millwright.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end }}
{{- end }}
