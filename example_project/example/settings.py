"""Settings of the example project: one line for scrapy-dripper, and the usual settings of a polite crawler."""

from __future__ import annotations

from pathlib import Path

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]

# The line that puts main content on the items.
ADDONS = {"scrapy_dripper.Addon": 500}
# Optional: puts the facts about each extraction into a third field.
DRIPPER_META_FIELD = "dripper"

# Politeness. Say who you are, so that a webmaster can contact you.
USER_AGENT = "example-crawler (+mailto:you@example.org)"
ROBOTSTXT_OBEY = True
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "example.middlewares.PatientRobotsTxtMiddleware": 100,
}
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1
DOWNLOAD_TIMEOUT = 30
RETRY_TIMES = 1

# Paths of the results.
OUTPUT_DIR = str(Path(__file__).resolve().parents[1] / "output")
FEEDS = {f"{OUTPUT_DIR}/pages.jsonl": {"format": "jsonlines", "encoding": "utf8", "overwrite": True}}
ITEM_PIPELINES = {"example.pipelines.MarkdownFiles": 300}

# Serves the example's own website to the spiders that crawl it (those with OWN_SITE = True).
OWN_SITE = False
EXTENSIONS = {"example.extensions.OwnSite": 0}

# Scrapy's ports for inspecting a running crawl, which a short crawl does not need.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
