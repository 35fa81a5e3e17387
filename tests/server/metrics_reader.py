"""Reads `/metrics` of a service under test or of a process, and finds single samples."""

import urllib.error
import urllib.request
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from guichet import metrics
from guichet.settings import Settings
from tests.patience import PATIENCE
from tests.service_fixture import ServiceFixture

TOKEN = "a-token-of-sixteen-or-more"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def counted(name: str, **labels: str) -> float:
    """What this process counted of a series; 0 if there is none yet."""
    found = (sample for family in metrics.collect() for sample in family.samples)
    return next((sample.value for sample in found if sample.name == name and sample.labels == labels), 0.0)


async def scrape(service: ServiceFixture) -> Samples:
    answer = await service.call("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200, answer.raw
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return parsed(answer.raw.decode())


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


def change(before: Samples, after: Samples, name: str, **labels: str) -> float:
    return value(after, name, **labels) - value(before, name, **labels)


def measured(settings: Settings) -> Settings:
    return replace(settings, metrics_token=TOKEN)


def fetch(address: str) -> Samples:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return parsed(answer.read().decode())


def responds(address: str) -> bool:
    try:
        return bool(fetch(address))
    except OSError:
        return False
