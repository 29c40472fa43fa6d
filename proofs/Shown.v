(* Functions of a state, episodes: other ways to pay, and other secrets. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Shown.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V).
Variable (a : nat -> R).
Hypothesis a1 : forall j, 1 <= a j.
Local Notation paid_shown := (paid_shown observe a).
Local Notation level_shown := (level_shown observe a).
Implicit Types (s : seq S).

Let a0 j : 0 <= a j. Proof. exact: le_trans ler01 (a1 j). Qed.

Lemma level_shown_ge1 j z z' : 1 <= level_shown j z z'.
Proof. by rewrite /level_shown; case: ifP. Qed.

Lemma paid_shown_ge1 s s' : 1 <= paid_shown s s'.
Proof.
elim: s s' => [|z s IH] [|z' s'] //=.
by rewrite mulr_ege1 // level_shown_ge1.
Qed.

Lemma charges_shown : charges paid_shown level_shown a.
Proof.
split.
- by move=> s s'; apply: le_trans ler01 (paid_shown_ge1 s s').
- by elim=> //= z s ->; rewrite /level_shown eqxx mulr1.
- elim=> [|z s IH] [|z' s'] [|z'' s''] //=; first by rewrite mulr1.
  move=> [e1] [e2].
  rewrite mulrACA; apply: ler_pmul.
  + exact: le_trans ler01 (level_shown_ge1 _ _ _).
  + exact: le_trans ler01 (paid_shown_ge1 _ _).
  + rewrite /level_shown -e1; have [->|ne] := eqVneq (observe z) (observe z').
      by rewrite mul1r.
    have [<-|ne'] := eqVneq (observe z') (observe z''); first by rewrite (negbTE ne) mulr1.
    by case: ifP => _; rewrite ?mulr_ege1 // ler_pmulr // (lt_le_trans ltr01).
  + exact: IH.
- by [].
- by move=> j z z'; apply: le_trans ler01 (level_shown_ge1 _ _ _).
- by move=> j z z'; rewrite /level_shown; case: ifP.
- exact: a0.
Qed.

End Shown.

(* The whole series, as the two sides of a node see it. *)
Section Split.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V) (a : nat -> R) (T : nat).
Let b j := a (T - j.+1).

Lemma paid_shown_split l l' y y' : size l = size l' -> size y = size y' ->
    T = (size l + size y)%N ->
  paid_shown observe b (rev l ++ y) (rev l' ++ y')
    = paid_shown observe a l l' * paid_shown observe b y y'.
Proof.
elim: l l' y y' => [|z l IH] [|z' l'] y y' //=; first by rewrite mul1r.
move=> [el] ey Te; rewrite !rev_cons !cat_rcons IH //=; last by rewrite Te addnS.
  by rewrite mulrCA -mulrA; congr (_ * _); rewrite /level_shown /b Te addSn subSS addnK.
by rewrite ey.
Qed.

End Split.

Section ShownSweep.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V).
Variables (m : S -> R) (P : nat -> S -> S -> R) (a : nat -> R).
Hypotheses (ch : chain m P) (a1 : forall j, 1 <= a j).
Variables (T i k : nat).
Hypothesis Tik : T = (i + k.+1)%N.
Let b j := a (T - j.+1).
Variable occurs : nat -> pred S.
Hypothesis start_occurs : forall x, ~~ occurs 0%N x -> m x = 0.
Hypothesis next_occurs :
  forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0.
Variables (FR : nat -> S -> S -> R) (finR : nat -> rel S).
Hypothesis recR : recursion (kernel_right P T) (fun=> 1)
  (level_shown observe b) b (fun=> predT) FR finR.
Variables (FL : nat -> S -> S -> R) (finL : nat -> rel S).
Hypothesis recL : recursion (kernel_left P) m (level_shown observe a) a occurs FL finL.

Theorem shown_sweep g x x' : within_shown observe a T g ->
    occurs i x -> occurs i x' -> x != x' -> finL i x x' -> finR k x x' ->
  partial_mean m P T i g x
    <= level_shown observe a i x x' * FL i x x' * FR k x x' * partial_mean m P T i g x'.
Proof.
move=> [g0 gl] occ occ' neq fl fr; rewrite !(partial_mean_both _ _ Tik).
have size_both y l r : size l = i -> size r = k -> size (rev l ++ y :: r) = T.
  by move=> sl sr; rewrite size_cat size_rev /= sl sr.
have [FL0 _] := recL occ occ' neq fl.
have [FR0 _] := recR (erefl : predT x) (erefl : predT x') neq fr.
have b1 j : 1 <= b j by exact: a1.
apply: (two_sides (support_left ch start_occurs next_occurs) (charges_shown observe a1)
  (support_right ch T) (charges_shown observe b1)) => //.
- exact: le_trans ler01 (level_shown_ge1 observe a1 _ _ _).
- by move=> l r sl sr; rewrite g0 ?size_both.
- move=> l l' r r' sl sl' sr sr'.
  apply: le_trans (gl _ (rev l' ++ x' :: r') _ _) _; rewrite ?size_both //.
  apply: ler_wpmul2r; rewrite ?g0 ?size_both // paid_shown_split /= ?sl ?sl' ?sr ?sr' //.
  have -> : level_shown observe b k x x' = level_shown observe a i x x'.
    by rewrite /level_shown /b Tik addnK.
  by rewrite mulrCA mulrA.
- move=> h h0 hD; exact: (side_bound (support_left ch start_occurs next_occurs)
    (charges_shown observe a1) recL).
- move=> h h0 hD; exact: (side_bound (support_right ch T) (charges_shown observe b1) recR).
Qed.

End ShownSweep.
