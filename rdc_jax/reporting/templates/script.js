"use strict";
// Tables sort by their headings: numbers begin with the largest, names with the first.
const status = document.getElementById("sorted");
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const rows = [...table.tBodies[0].rows];
      const [first, second] = head.matches(".number") ? ["descending", "ascending"] : ["ascending", "descending"];
      const order = head.getAttribute("aria-sort") === first ? second : first;
      const sign = order === "ascending" ? 1 : -1;
      const compare = (a, b) => head.matches(".number") ? a - b : a.localeCompare(b, "en", { numeric: true });
      rows.sort((a, b) => key(a) === "" || key(b) === "" ? (key(a) === "") - (key(b) === "") : sign * compare(key(a), key(b)));
      table.tBodies[0].append(...rows);
      for (const other of heads) other.setAttribute("aria-sort", other === head ? order : "none");
      status.textContent = `Sorted by ${head.textContent.trim()}, ${order}.`;
    });
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });
}
