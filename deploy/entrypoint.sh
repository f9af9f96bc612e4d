#!/bin/sh
# What a container of the image runs: an executor where Spark asks for one, else ps2stream with its arguments.
set -eu

[ "${1:-}" = executor ] || exec ps2stream "$@"

# Spark tells a pod of its own by variables what the executor in it is to be; options of Java are numbered.
set --
n=0
while eval "[ -n \"\${SPARK_JAVA_OPT_$n+given}\" ]"; do
    eval "set -- \"\$@\" \"\$SPARK_JAVA_OPT_$n\""
    n=$((n + 1))
done
exec java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
