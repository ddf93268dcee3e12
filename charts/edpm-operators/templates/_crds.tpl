{{/*
Whether a definition may be installed; refuses with the owner's name if it is someone else's. Takes
root and name. Without a cluster (helm template) nobody owns anything.

A definition that was left by an earlier release of the same name and namespace is Helm's own to adopt.
*/}}
{{- define "edpm.crd.refuseForeign" -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name -}}
{{- if $found -}}
{{- $labels := $found.metadata.labels | default dict -}}
{{- $annotations := $found.metadata.annotations | default dict -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- $ours := and (eq $release .root.Release.Name) (eq $namespace .root.Release.Namespace) -}}
{{- if not $ours -}}
{{- $owner := include "edpm.crd.owner" (dict "found" $found "release" $release "namespace" $namespace) -}}
{{- $ways := list (printf "leave it to its owner: --set crds.%s=false" $found.spec.names.kind) -}}
{{- if hasKey $labels "edpm.openstack.org/managed-by" -}}
{{- $selector := "-l edpm.openstack.org/managed-by=edpm-operators" -}}
{{- $handOver := printf "kubectl label crd %s --overwrite app.kubernetes.io/managed-by=Helm && kubectl annotate crd %s --overwrite meta.helm.sh/release-name=%s meta.helm.sh/release-namespace=%s" $selector $selector .root.Release.Name .root.Release.Namespace -}}
{{- $ways = append $ways (printf "or, if that owner is gone, hand over all definitions of this chart: %s" $handOver) -}}
{{- end -}}
{{- fail (printf "\n\nThe definition %s is there already; its owner is %s.\n%s\n" .name $owner (join "\n" $ways)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Who owns a definition, as far as it says so. */}}
{{- define "edpm.crd.owner" -}}
{{- $labels := .found.metadata.labels | default dict -}}
{{- $operators := list -}}
{{- range $key, $_ := $labels -}}
{{- if hasPrefix "operators.coreos.com/" $key -}}
{{- $operators = append $operators (trimPrefix "operators.coreos.com/" $key) -}}
{{- end -}}
{{- end -}}
{{- if .release -}}
the Helm release {{ .release }} in namespace {{ .namespace }}
{{- else if $operators -}}
the operator {{ join ", " $operators }} of the Operator Lifecycle Manager
{{- else if hasKey $labels "app.kubernetes.io/managed-by" -}}
{{ get $labels "app.kubernetes.io/managed-by" }}
{{- else -}}
whoever wrote it as {{ .found.metadata.managedFields | default list | first | default dict | dig "manager" "an unknown manager" }}
{{- end -}}
{{- end }}
