/** Markdown of an agent: rendered without raw HTML, then sanitised all the same. */

import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import MarkdownIt from "markdown-it";

const LANGUAGES = { bash, c, cpp, css, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const MAX_HIGHLIGHTED = 20_000; // characters; colouring more than that is not worth the wait
const MAX_RENDERED = 200_000;

/** Code as HTML with classes; empty where the language is not known. */
export function highlighted(code: string, language: string): string {
  if (code.length > MAX_HIGHLIGHTED || hljs.getLanguage(language) === undefined) return "";
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

const renderer = new MarkdownIt({ html: false, linkify: true, breaks: false, highlight: highlighted });

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "title"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true as const,
};

/** Sanitised elements of a Markdown text. Links open elsewhere and tell nothing about this page; images are not loaded. */
export function markdown(text: string): DocumentFragment {
  if (text.length > MAX_RENDERED) {
    const plain = document.createElement("pre");
    plain.textContent = text;
    const fragment = document.createDocumentFragment();
    fragment.append(plain);
    return fragment;
  }
  const fragment = DOMPurify.sanitize(renderer.render(text), ALLOWED);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  return fragment;
}
