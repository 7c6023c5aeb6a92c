// Scrolls the sidebar, which has a scroll bar of its own, to the page that is shown.
addEventListener("load", () => {
  const box = document.querySelector(".sidebar-scroll");
  const here = document.querySelector(".sidebar-tree .current-page > a");
  if (!box || !here) return;
  const below = here.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
  if (below > 0) box.scrollTo({ top: below + box.clientHeight / 2, behavior: "instant" });
});
