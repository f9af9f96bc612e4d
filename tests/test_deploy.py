"""The files of deploy/: names in them that refer to each other, to our options and to Spark's settings do so.

No cluster of Kubernetes and no Docker is asked. What Spark's own classes know is read from its jars.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from ps2stream.cli.main import _parser
from testbed.spark import spark_home

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
ENTRYPOINT = DEPLOY / "entrypoint.sh"
#: What these classes have among their constants is a setting of Spark, or a variable that it sets.
CONFIGURATION = (
    "org/apache/spark/internal/config/",
    "org/apache/spark/SparkConf",
    "org/apache/spark/api/python/",
    "org/apache/spark/deploy/k8s/",
    "org/apache/spark/deploy/yarn/",
    "org/apache/spark/scheduler/cluster/k8s/",
    "org/apache/spark/executor/CoarseGrainedExecutorBackend",
)
#: Settings that go on in a name of the user's own.
OPEN_SETTINGS = {
    "spark.executorEnv.": "",
    "spark.yarn.appMasterEnv.": "",
    "spark.kubernetes.executor.secretKeyRef.": "",
    "spark.kubernetes.executor.volumes.": r"emptyDir\.[a-z-]+\.(mount\.path|options\.sizeLimit)",
}


@functools.cache
def constants_of_spark() -> bytes:
    jars = [
        jar
        for name in ("core", "kubernetes", "yarn")
        for jar in (spark_home() / "jars").glob(f"spark-{name}_*.jar")
    ]
    assert len(jars) == 3
    found = []
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            found += [archive.read(name) for name in archive.namelist() if name.startswith(CONFIGURATION)]
    return b"\0".join(found)


def knows_spark(constant: str) -> bool:
    """Say whether Spark has a string as a whole: in a class its length stands before it."""
    return len(constant).to_bytes(2, "big") + constant.encode() in constants_of_spark()


def is_setting(name: str) -> bool:
    for start, rest in OPEN_SETTINGS.items():
        if name.startswith(start):
            return knows_spark(start) and bool(re.fullmatch(rest or ".+", name.removeprefix(start)))
    return knows_spark(name)


@functools.cache
def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))


def one(kind: str) -> dict[str, Any]:
    (found,) = (each for each in manifests() if each["kind"] == kind)
    return found


def spark_settings() -> dict[str, str]:
    lines = one("ConfigMap")["data"]["spark-defaults.conf"].splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def driver() -> dict[str, Any]:
    pod: dict[str, Any] = one("StatefulSet")["spec"]["template"]
    return pod


def container() -> dict[str, Any]:
    (only,) = driver()["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def environment() -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container()["env"]}


def executor() -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load(one("ConfigMap")["data"]["executor.yaml"])
    return pod


def test_every_document_is_a_named_object_of_one_namespace() -> None:
    for each in manifests():
        assert each["apiVersion"]
        assert each["kind"]
        assert each["metadata"]["name"]
        assert each["metadata"]["namespace"] == spark_settings()["spark.kubernetes.namespace"]


def test_the_driver_has_the_account_that_the_role_is_bound_to() -> None:
    account, role, binding = one("ServiceAccount"), one("Role"), one("RoleBinding")
    assert driver()["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [each["name"] for each in binding["subjects"]] == [account["metadata"]["name"]]


def test_executors_find_the_driver_by_its_service() -> None:
    service, stateful_set, settings = one("Service"), one("StatefulSet"), spark_settings()
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    assert stateful_set["spec"]["serviceName"] == name
    assert service["spec"]["selector"].items() <= driver()["metadata"]["labels"].items()
    assert stateful_set["spec"]["selector"]["matchLabels"] == driver()["metadata"]["labels"]
    pod = f"{stateful_set['metadata']['name']}-0"
    assert settings["spark.kubernetes.driver.pod.name"] == pod
    assert settings["spark.driver.host"] == f"{pod}.{name}.{namespace}.svc"
    ports = [int(settings[each]) for each in ("spark.driver.port", "spark.driver.blockManager.port")]
    assert [each["port"] for each in service["spec"]["ports"]] == ports
    assert [each["containerPort"] for each in container()["ports"]] == ports


def test_what_is_mounted_is_there() -> None:
    spec = one("StatefulSet")["spec"]
    volumes = {each["name"]: each for each in driver()["spec"]["volumes"]}
    claims = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    mounted = {each["name"]: each["mountPath"] for each in container()["volumeMounts"]}
    assert mounted.keys() == volumes.keys() | claims
    assert volumes["spark"]["configMap"]["name"] == one("ConfigMap")["metadata"]["name"]
    assert environment()["SPARK_CONF_DIR"] == mounted["spark"]
    arguments = container()["args"]
    assert arguments[arguments.index("--home") + 1] == mounted["home"]
    template = Path(spark_settings()["spark.kubernetes.executor.podTemplateFile"])
    assert str(template.parent) == mounted["spark"]
    assert template.name in one("ConfigMap")["data"]


def test_indexes_are_on_a_volume_of_driver_and_executors() -> None:
    settings = spark_settings()
    (mounted,) = (each["mountPath"] for each in container()["volumeMounts"] if each["name"] == "indexes")
    assert environment()["PS2STREAM_LOCAL_DIR"] == mounted
    assert settings["spark.executorEnv.PS2STREAM_LOCAL_DIR"] == mounted
    assert settings["spark.kubernetes.executor.volumes.emptyDir.indexes.mount.path"] == mounted


def test_driver_and_executors_are_of_one_image_and_have_the_same_credentials() -> None:
    settings = spark_settings()
    assert settings["spark.kubernetes.container.image"] == container()["image"]
    secrets = {
        each["name"]: "{name}:{key}".format(**each["valueFrom"]["secretKeyRef"])
        for each in container()["env"]
        if "valueFrom" in each
    }
    start = "spark.kubernetes.executor.secretKeyRef."
    assert secrets == {
        name.removeprefix(start): value for name, value in settings.items() if name.startswith(start)
    }
    assert environment()["AWS_REGION"] == settings["spark.executorEnv.AWS_REGION"]


def test_there_is_a_slot_for_every_task_and_one_executor_may_be_missing() -> None:
    settings, budget = spark_settings(), one("PodDisruptionBudget")["spec"]
    n_executors = int(settings["spark.executor.instances"])
    given = _parser(container()["args"]).parse_args(container()["args"])
    assert n_executors * int(settings["spark.executor.cores"]) >= given.workers + given.dispatchers
    assert budget["minAvailable"] == n_executors - 1
    assert budget["selector"]["matchLabels"] == executor()["metadata"]["labels"]


def test_nobody_is_root() -> None:
    (user,) = re.findall(r"^USER (\d+)$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    for pod in (driver(), executor()):
        context = pod["spec"]["securityContext"]
        assert context["runAsNonRoot"]
        assert context["runAsUser"] == context["fsGroup"] == int(user) > 0


def test_every_setting_is_one_of_spark() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w.])spark(?:\.[a-zA-Z0-9_]+){1,}(?![\w.(/])", page)) | set(
        spark_settings()
    )
    assert len(named) > 20
    files = {"spark.log"}
    assert sorted(name for name in named - files if not is_setting(name)) == []
    assert not is_setting("spark.kubernetes.executor.pod")
    assert not is_setting("spark.driver.hos")


def instructions() -> list[tuple[str, str]]:
    """Take the Dockerfile apart; comments may stand between the lines of an instruction."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in whole]


def test_the_image_is_made_of_files_of_the_checkout() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ARG", "ENV", "USER", "ENTRYPOINT"}
    assert {name for name, _ in instructions()} == known
    copied = [shlex.split(rest) for name, rest in instructions() if name == "COPY"]
    sources = [each for words in copied for each in words[:-1] if not each.startswith("--")]
    assert {"src", "requirements-cluster.lock", "deploy/entrypoint.sh"} <= set(sources)
    assert [each for each in sources if not (ROOT / each).exists()] == []


def test_what_the_build_needs_is_copied_before_it_is_needed() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    license_files = re.findall(r'"(\w+)"', re.search(r"license-files = (.*)", project)[1])  # type: ignore[index]
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    before_build = text[: text.index("--no-deps .")]
    for needed in ("pyproject.toml", "README.md", *license_files):
        assert needed in before_build


def test_paths_of_python_in_the_image_are_of_one_version() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^FROM python:([\d.]+)-", text, re.MULTILINE)
    assert set(re.findall(r"python([\d.]+)/site-packages", text)) == {version}


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """Put programs first on the path that tell how they were called."""
    for name in ("java", "ps2stream"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@"\n')
        program.chmod(0o755)
    return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def called(environment: dict[str, str], *arguments: str) -> list[str]:
    done = subprocess.run(
        [str(ENTRYPOINT), *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_a_container_runs_our_commands(programs: dict[str, str]) -> None:
    assert called(programs, "run", "--home", "a b") == ["ps2stream", "run", "--home", "a b"]


def test_a_container_is_an_executor_where_spark_asks_for_one(programs: dict[str, str]) -> None:
    told = re.findall(r"\$\{?(SPARK_[A-Z_]+)", ENTRYPOINT.read_text(encoding="utf-8"))
    by_spark = {name: name.lower() for name in told if name not in ("SPARK_HOME", "SPARK_JAVA_OPT_")}
    assert all(map(knows_spark, [*by_spark, "SPARK_JAVA_OPT_", "executor"]))
    options = {"SPARK_JAVA_OPT_0": "-Da=b c", "SPARK_JAVA_OPT_1": "-Dd=$e"}
    _, *words = called({**programs, **by_spark, **options, "SPARK_HOME": "/spark"}, "executor")
    memory = by_spark["SPARK_EXECUTOR_MEMORY"]
    assert words[:4] == ["-Da=b c", "-Dd=$e", f"-Xms{memory}", f"-Xmx{memory}"]
    assert words[4:6] == ["-cp", "spark_conf_dir:/spark/jars/*"]
    assert words[6] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert all(map(knows_spark, words[7::2]))
    assert words[7::2].count("--podName") == 1
    assert set(words[8::2]) == set(by_spark.values()) - {memory, "spark_conf_dir"}
