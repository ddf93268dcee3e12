{{/*
One operator: account, roles, Deployment. Takes root, operator, values (the operator's own), env (a
list of name and value), hasWebhooks (whether it can serve webhooks), and webhook (whether it does).

Objects in the release's namespace have the operator's bare name: a second release there would share
the Lease, so it must be refused.
*/}}
{{- define "edpm.operator" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .operator }}
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
automountServiceAccountToken: false
---
{{ include "edpm.rbac" . }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .operator }}
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
spec:
  replicas: {{ .root.Values.replicas }}
  revisionHistoryLimit: 3
  # The new pod is there and ready before the old one releases the Lease: nothing stands still.
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  selector:
    matchLabels:
      {{- include "edpm.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "edpm.labels" . | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .operator }}
    spec:
      {{- include "edpm.pod" . | nindent 6 }}
{{- end }}

{{/* The pod of an operator. */}}
{{- define "edpm.pod" -}}
serviceAccountName: {{ .operator }}
automountServiceAccountToken: true
# Variables that other Services bring along are no configuration of ours.
enableServiceLinks: false
dnsPolicy: {{ .root.Values.dnsPolicy }}
# Tasks get 20 s to finish, the Lease and the endpoints 5 s more.
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  {{- with .root.Values.runAsUser }}
  runAsUser: {{ int64 . }}
  runAsGroup: {{ int64 . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ .operator }}
    image: {{ include "edpm.image" .root | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [/usr/local/bin/{{ .operator }}]
    env:
      {{- include "edpm.env" . | nindent 6 }}
    ports:
      - name: admin
        containerPort: 8080
      {{- if .webhook }}
      - name: webhook
        containerPort: 9443
      {{- end }}
    livenessProbe:
      httpGet: {path: /healthz, port: admin}
      periodSeconds: 20
      timeoutSeconds: 5
      failureThreshold: 3
    readinessProbe:
      httpGet: {path: /readyz, port: admin}
      periodSeconds: 5
      timeoutSeconds: 5
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      runAsNonRoot: true
      capabilities:
        drop: [ALL]
{{- end }}

{{/* The arguments of all operators, and then their own. */}}
{{- define "edpm.env" -}}
- name: POD_NAMESPACE
  valueFrom:
    fieldRef: {fieldPath: metadata.namespace}
- name: POD_NAME
  valueFrom:
    fieldRef: {fieldPath: metadata.name}
- name: WATCH_NAMESPACES
  value: {{ join "," .root.Values.watchNamespaces | quote }}
- name: CLAIM_KINDS
  value: {{ join "," .root.Values.claimKinds | quote }}
- name: LOG_FORMAT
  value: {{ .root.Values.logFormat }}
- name: LOG_LEVEL
  value: {{ .root.Values.logLevel | quote }}
{{- range .env }}
- name: {{ .name }}
  value: {{ .value | quote }}
{{- end }}
{{- if .hasWebhooks }}
{{ include "edpm.webhookEnv" . }}
{{- end }}
{{- end }}

{{/* The arguments about webhooks of an operator that has them. */}}
{{- define "edpm.webhookEnv" -}}
- name: ENABLE_WEBHOOKS
  value: {{ .webhook | quote }}
{{- if .webhook }}
- name: WEBHOOK_SERVICE
  value: {{ include "edpm.webhook" . }}
- name: WEBHOOK_CONFIGURATION
  value: {{ include "edpm.globalName" . }}
- name: WEBHOOK_CERTIFICATES
  value: {{ .root.Values.webhooks.certificates }}
{{- with .root.Values.webhooks.clientAuthorities }}
- name: WEBHOOK_CLIENT_AUTHORITIES
  valueFrom:
    configMapKeyRef: {name: {{ . | quote }}, key: ca.crt}
{{- end }}
{{- end }}
{{- end }}
