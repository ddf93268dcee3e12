{{/*
What one operator may do, each only where it needs it: the rules of the code's tables in the watched
namespaces (or in all), the Lease in its own, and by name its own webhook configurations and the
definitions of its kinds.
*/}}
{{- define "edpm.rbac" -}}
{{- $operator := . -}}
{{- $name := include "edpm.globalName" . -}}
{{- if .root.Values.watchNamespaces }}
{{- range .root.Values.watchNamespaces }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "edpm.labels" $operator | nindent 4 }}
rules:
  {{- include (printf "edpm.rules.%s" $operator.operator) $operator.root | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "edpm.labels" $operator | nindent 4 }}
{{- include "edpm.binding" (dict "kind" "Role" "name" $name "of" $operator) }}
---
{{- end }}
{{- else }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
rules:
  {{- include (printf "edpm.rules.%s" .operator) .root | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
{{- include "edpm.binding" (dict "kind" "ClusterRole" "name" $name "of" .) }}
---
{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .operator }}
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
rules:
  {{- include (printf "edpm.election.%s" .operator) .root | nindent 2 }}
  {{- with include (printf "edpm.keys.%s" .operator) .root }}
  # The first operator makes the key for digests of what Secrets hold; the chart never does.
  {{- . | nindent 2 }}
  {{- end }}
  {{- if .webhook }}
  # The chart makes the Secret, the operator fills and renews it; it watches this name alone. What
  # cert-manager fills is only read.
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [{{ include "edpm.webhook" . }}-tls]
    verbs: [{{ if include "edpm.certManager" .root }}list, watch{{ else }}list, update, watch{{ end }}]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .operator }}
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
{{- include "edpm.binding" (dict "kind" "Role" "name" .operator "of" .) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}-definitions
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
rules:
  {{- include (printf "edpm.definitions.%s" .operator) .root | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}-definitions
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
{{- include "edpm.binding" (dict "kind" "ClusterRole" "name" (printf "%s-definitions" $name) "of" .) }}
{{- if .webhook }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}-webhook
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
rules:
  - apiGroups: [admissionregistration.k8s.io]
    resources: [{{ if eq .operator "nova-operator" }}mutatingwebhookconfigurations, {{ end }}validatingwebhookconfigurations]
    resourceNames: [{{ $name }}]
    verbs: [{{ if include "edpm.certManager" .root }}list, watch{{ else }}list, patch, watch{{ end }}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}-webhook
  labels:
    {{- include "edpm.labels" . | nindent 4 }}
{{- include "edpm.binding" (dict "kind" "ClusterRole" "name" (printf "%s-webhook" $name) "of" .) }}
{{- end }}
{{- end }}

{{/* What a binding binds: the role to the operator's account. */}}
{{- define "edpm.binding" }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .of.operator }}
    namespace: {{ .of.root.Release.Namespace }}
{{- end }}
