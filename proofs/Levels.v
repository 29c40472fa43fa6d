(* Levels: how far a release, or a transcript of several, moves when data change.

   Everything that is paid is paid for a window of time points: a point is a window of
   one, a pair of neighbours a window of two. Levels are factors, e^s for a level s. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Products.
Variables (R : realFieldType) (levels : seq (window R)).
Hypothesis ok : all (@valid R) levels.
Implicit Types (A B C : pred (window R)).

Lemma factor_ge1 w : w \in levels -> 1 <= factor w.
Proof. by move=> /(allP ok) /andP[]. Qed.

Lemma factor_ge0 w : w \in levels -> 0 <= factor w.
Proof. by move=> /factor_ge1; apply: le_trans; exact: ler01. Qed.

Lemma prod_ge0 A : 0 <= \prod_(w <- levels | A w) factor w.
Proof.
rewrite big_seq_cond; apply: prodr_ge0 => w /andP[win _].
by rewrite (le_trans ler01) ?factor_ge1.
Qed.

Lemma prod_ge1 A : 1 <= \prod_(w <- levels | A w) factor w.
Proof.
rewrite big_seq_cond; elim/big_rec: _ => // w x /andP[win _] x1.
by rewrite mulr_ege1 ?factor_ge1.
Qed.

Lemma prod_sub A B C :
  (forall w, w \in levels -> A w -> B w || C w) ->
  \prod_(w <- levels | A w) factor w
    <= (\prod_(w <- levels | B w) factor w) * (\prod_(w <- levels | C w) factor w).
Proof.
move=> sub; rewrite big_mkcond [X in _ <= X * _]big_mkcond [X in _ <= _ * X]big_mkcond /=.
rewrite -big_split /= [X in X <= _]big_seq [X in _ <= X]big_seq.
apply: ler_prod => w win; have w1 := factor_ge1 win; have w0 := le_trans ler01 w1.
have ww : 1 <= factor w * factor w by rewrite mulr_ege1.
have wle : factor w <= factor w * factor w by rewrite ler_pmulr ?(lt_le_trans ltr01).
have := sub w win; case: (A w) => [/(_ isT)|_]; rewrite ?w0 ?ler01 /=.
  by case: (B w); case: (C w) => //= _; rewrite ?mul1r ?mulr1.
by case: (B w); case: (C w); rewrite ?mul1r ?mulr1.
Qed.

End Products.

Section Content.
Variable S : finType.
Implicit Types (s t : seq S) (a b : nat).

Lemma content_catl a b s t : (b < size s)%N -> content a b (s ++ t) = content a b s.
Proof.
move=> bs; rewrite /content.
have [ab|ba] := leqP a b; last first.
  by rewrite (_ : b.+1 - a = 0)%N ?take0 //; apply/eqP; rewrite subn_eq0.
rewrite drop_cat (leq_ltn_trans ab bs) takel_cat // size_drop leq_sub2r //.
Qed.

Lemma content_catr a b s t : (size s <= a)%N -> (a <= b)%N ->
  content a b (s ++ t) = content (a - size s) (b - size s) t.
Proof.
move=> sa ab; rewrite /content drop_cat ltnNge sa /=.
by rewrite -subSn ?(leq_trans sa) // subnBA // subnK // (leq_trans sa) ?leqW.
Qed.

End Content.

(* What lies on one side of a node, read outwards, pays what is in its own windows. *)
Section Charges.
Variables (R : realFieldType) (S : finType) (levels : seq (window R)).
Hypothesis ok : all (@valid R) levels.
Implicit Types (s l r : seq S) (w : window R).

Lemma window_le w : w \in levels -> (first w <= last w)%N.
Proof. by move=> /(allP ok) /andP[]. Qed.

(* To the left lists are reversed: the last window to end is at the head. *)
Definition paid_left (l l' : seq S) : R :=
  \prod_(w <- levels | (last w < size l)%N && changed w (rev l) (rev l')) factor w.

Lemma charges_left :
  charges paid_left (fun j _ _ => backward levels j) (backward levels).
Proof.
split=> //; rewrite /paid_left; try by move=> *; exact: prod_ge0.
- by move=> s; rewrite big1 // => w; rewrite /changed eqxx andbF.
- move=> s s' s'' eq1 eq2; apply: prod_sub => // w _ /andP[lt c].
  rewrite -eq1 lt /=; apply: contraNT c => /norP[].
  by move=> /negbNE /eqP -> /negbNE.
- move=> z z' s s' eqs; apply: prod_sub => // w win /andP[/= lw].
  have [//|/= ne] := eqVneq (last w) (size s).
  have lt : (last w < size s)%N by rewrite ltn_neqAle ne.
  by rewrite /changed !rev_cons -!cats1 !content_catl ?size_rev -?eqs // lt.
Qed.

(* To the right the list ends at the last of T time points. *)
Variable T : nat.
Definition shifted (n : nat) w : window R :=
  ((first w + n - T)%N, (last w + n - T)%N, factor w).
Definition paid_right (r r' : seq S) : R :=
  \prod_(w <- levels | (T <= first w + size r)%N && changed (shifted (size r) w) r r')
    factor w.
Local Notation begins := (begins levels T).

Lemma charges_right : charges paid_right (fun j _ _ => begins j) begins.
Proof.
split=> //; rewrite /paid_right; try by move=> *; exact: prod_ge0.
- by move=> s; rewrite big1 // => w; rewrite /changed eqxx andbF.
- move=> s s' s'' eq1 eq2; apply: prod_sub => // w _ /andP[lt c].
  rewrite -eq1 lt /=; apply: contraNT c => /norP[].
  by move=> /negbNE /eqP -> /negbNE.
- move=> z z' s s' eqs; apply: prod_sub => // w win /andP[/= lw].
  have [//|/= ne] := eqVneq (first w + (size s).+1)%N T.
  have lt : (T <= first w + size s)%N by rewrite -ltnS -addnS ltn_neqAle eq_sym ne.
  have wle := window_le win.
  have lt' : (T <= last w + size s)%N by rewrite (leq_trans lt) ?leq_add2r.
  rewrite lt /changed /shifted /first /last /= -[z :: s]cat1s -[z' :: s']cat1s.
  rewrite -/(first w) -/(last w) !content_catr ?leq_sub2r ?leq_add2r // ?subn_gt0 ?addnS ?ltnS //.
  by rewrite /= !(subSn lt) !(subSn lt') !subn1 /=.
Qed.

(* What a change of the time points from i to j pays at most. *)
Definition touching i j : R :=
  \prod_(w <- levels | (first w <= j)%N && (i <= last w)%N) factor w.

Lemma touching_prod i n :
  touching i (i + n) = own levels i * \prod_(i.+1 <= t < (i + n).+1) forward levels t.
Proof.
elim: n => [|n IH]; first by rewrite addn0 big_geq // mulr1.
rewrite addnS big_nat_recr ?ltnS ?leq_addr //= mulrA -IH /touching /forward.
rewrite (bigID (fun w => (first w <= i + n)%N)) /=; congr (_ * _).
  by apply: eq_bigl => w; rewrite andbC andbA; case: leqP => //= le; rewrite leqW.
rewrite big_seq_cond [RHS]big_seq_cond; apply: eq_bigl => w.
case win: (w \in levels) => //=; rewrite -ltnNge [RHS]eqn_leq.
case: (ltnP (i + n) (first w)) => lt; rewrite ?andbF ?andbT //.
by rewrite [(i <= _)%N](_ : _ = true) ?andbT // (leq_trans _ (window_le win)) // ltnW // (leq_ltn_trans (leq_addr n i)).
Qed.

(* A block with i nodes before it and k after it: a window lies on one side or meets it. *)
Lemma paid_around i n k b b' l l' r r' : T = (i + (n + k).+1)%N ->
    size b = n.+1 -> size b' = n.+1 ->
    size l = i -> size l' = i -> size r = k -> size r' = k ->
  paid levels (rev l ++ b ++ r) (rev l' ++ b' ++ r')
    <= touching i (i + n) * paid_left l l' * paid_right r r'.
Proof.
move=> Tik sb sb' sl sl' sr sr'; rewrite -mulrA.
pose B w := ((last w < size l)%N && changed w (rev l) (rev l')) ||
  ((T <= first w + size r)%N && changed (shifted (size r) w) r r').
apply: le_trans (_ : _ <= touching i (i + n) * \prod_(w <- levels | B w) factor w) _.
  apply: prod_sub => // w win c /=; rewrite /B sl sr.
  case: (ltnP (last w) i) c => [lt|ge] /=.
    by rewrite /changed !content_catl ?size_rev ?sl ?sl' // => ->; rewrite orbT.
  rewrite andbT; case: (leqP (first w) (i + n)) => //= gt; rewrite /changed /=.
  have wle := window_le win.
  rewrite !catA !content_catr ?size_cat ?size_rev ?sl ?sl' ?sb ?sb' ?addnS //.
  have Tb : T = ((i + n).+1 + k)%N by rewrite Tik addnS addnA addSn.
  rewrite Tb leq_add2r gt /= /shifted /first /last /=.
  by rewrite Tb !subnDr.
by apply: ler_wpmul2l; [exact: prod_ge0 | exact: prod_sub].
Qed.

Lemma paid_across i k x x' l l' r r' : T = (i + k.+1)%N ->
    size l = i -> size l' = i -> size r = k -> size r' = k ->
  paid levels (rev l ++ x :: r) (rev l' ++ x' :: r')
    <= own levels i * paid_left l l' * paid_right r r'.
Proof.
move=> Tik sl sl' sr sr'.
have := @paid_around i 0 k [:: x] [:: x'] l l' r r'; rewrite addn0 add0n.
by apply.
Qed.

End Charges.
