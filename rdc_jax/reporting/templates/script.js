"use strict";
(() => {
  const status = document.getElementById("sorted");
  const value = (row, column) => {
    const text = row.cells[column].dataset.sort;
    if (text === undefined) return null;
    return text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });

  const sort = (table, column, heading) => {
    const rows = [...table.tBodies[0].rows];
    const numeric = rows.some((row) => typeof value(row, column) === "number");
    const before = heading.getAttribute("aria-sort");
    // Numbers begin with the largest, names with the first letter.
    const first = numeric ? "descending" : "ascending";
    const second = numeric ? "ascending" : "descending";
    const order = before === first ? second : first;
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * compare(a, b);
    });
    table.tBodies[0].append(...rows);
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", order);
    status.textContent = `Sorted by ${heading.textContent.trim()}, ${order}.`;
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sort(table, column, heading));
      heading.replaceChildren(button);
      heading.setAttribute("aria-sort", "none");
    });
  }

  // A scrolling box needs a stop for the keyboard only while it has something to scroll.
  const boxes = [...document.querySelectorAll(".scroll")];
  const stops = () => {
    for (const box of boxes) box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  };
  window.addEventListener("resize", stops);
  stops();

  // Settings belong on paper; tasks are printed as the reader has unfolded them.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.settings:not([open])")];
    for (const part of folded) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });
})();
