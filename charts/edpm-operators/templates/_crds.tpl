{{/*
Refuses definitions that are switched on and belong to somebody else, naming each owner and the ways on.
Without a cluster (helm template) no CRD has an owner.

A definition that was left by an earlier release of the same name and namespace is Helm's own to adopt.
*/}}
{{- define "edpm.crds.refuseForeign" -}}
{{- $foreign := list -}}
{{- $switches := list -}}
{{- $ours := true -}}
{{- range $kind, $name := fromJson (include "edpm.crds.names" .) -}}
{{- $found := get $.Values.crds $kind | ternary (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name) dict -}}
{{- $annotations := dig "metadata" "annotations" dict $found -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- if and $found (not (and (eq $release $.Release.Name) (eq $namespace $.Release.Namespace))) -}}
{{- $owner := include "edpm.crds.owner" (dict "found" $found "release" $release "namespace" $namespace) -}}
{{- $foreign = append $foreign (printf "  %s belongs to %s" $name $owner) -}}
{{- $switches = append $switches (printf "crds.%s=false" $kind) -}}
{{- $ours = and $ours (hasKey (dig "metadata" "labels" dict $found) "edpm.openstack.org/managed-by") -}}
{{- end -}}
{{- end -}}
{{- if $foreign -}}
{{- $ways := printf "Leave them to their owner:\n  --set %s" (join "," $switches) -}}
{{- if $ours -}}
{{- $all := "kubectl %s crd --overwrite -l edpm.openstack.org/managed-by=edpm-operators" -}}
{{- $label := printf "%s app.kubernetes.io/managed-by=Helm" (printf $all "label") -}}
{{- $annotate := printf "%s meta.helm.sh/release-name=%s meta.helm.sh/release-namespace=%s" (printf $all "annotate") .Release.Name .Release.Namespace -}}
{{- $ways = printf "%s\nor, if that owner is gone, hand this chart's definitions over to this release:\n  %s\n  %s" $ways $label $annotate -}}
{{- end -}}
{{- fail (printf "\n\nSome definitions are there already:\n%s\n%s\n" (join "\n" $foreign) $ways) -}}
{{- end -}}
{{- end }}

{{/* Who owns a definition, as far as it says so. */}}
{{- define "edpm.crds.owner" -}}
{{- $labels := dig "metadata" "labels" dict .found -}}
{{- $operators := list -}}
{{- range $key, $_ := $labels -}}
{{- if hasPrefix "operators.coreos.com/" $key -}}
{{- $operators = append $operators (trimPrefix "operators.coreos.com/" $key) -}}
{{- end -}}
{{- end -}}
{{- if .release -}}
the Helm release {{ .release }} in namespace {{ .namespace }}
{{- else if $operators -}}
{{ join ", " $operators }} of the Operator Lifecycle Manager
{{- else if hasKey $labels "app.kubernetes.io/managed-by" -}}
{{ get $labels "app.kubernetes.io/managed-by" }}
{{- else -}}
the field manager {{ .found.metadata.managedFields | default list | first | default dict | dig "manager" "unknown" }}
{{- end -}}
{{- end }}
